/// What is known of each fault point: which program reaches it, and how often.
#pragma once

#include <string>
#include <vector>

#include "common/fault_point.hpp"

namespace leasehold::testing {

enum class Program : unsigned char { Broker, Worker, Tenant };
enum class Action : unsigned char { Kill, Stop };

struct FaultCase {
  FaultSite site{};
  /// A later arrival worth testing; 0 when the point is reached once, or not on command.
  int later = 0;
};

/// All rows. A point without a row fails "every fault point has a case".
const std::vector<FaultCase>& fault_cases();

/// Points that these cases do not reach: those of a worker that reconnects to a broker with kept
/// descriptors (tests/process/restart), that of one with a spill file (spill_test.cpp), and those
/// of agents and gateways (tests/process/cell, tests/process/gateway).
const std::vector<FaultSite>& fault_points_of_other_tests();

/// From the first word of the point's name.
Program program_of(FaultSite site);

/// One run: a point and the arrival that triggers it.
struct Fault {
  FaultSite site{};
  Action action = Action::Kill;
  int arrival = 1;
};

/// In the form of LEASEHOLD_FAULT.
std::string text(const Fault& fault);

/// All runs with this action in this program, at first and later arrivals.
std::vector<Fault> faults(Program program, Action action);

}  // namespace leasehold::testing

/// What is known of each fault point: whose it is, and how often a process gets there.
#pragma once

#include <string>
#include <vector>

#include "common/fault_point.hpp"

namespace leasehold::testing {

enum class Program : unsigned char { Broker, Worker, Tenant };
enum class Action : unsigned char { Kill, Stop };

struct FaultCase {
  FaultSite site{};
  /// A second arrival worth trying; 0 when a process gets there once, or not on command.
  int later = 0;
};

/// The rows there are. A point without one fails "every fault point has a case".
const std::vector<FaultCase>& fault_cases();

/// Points a worker reaches only on its way back to a broker with a store: tests/process/restart
/// kills it there.
const std::vector<FaultSite>& reconnect_fault_points();

/// By the first word of the point's name.
Program program_of(FaultSite site);

/// One run: this point, at this arrival.
struct Fault {
  FaultSite site{};
  Action action = Action::Kill;
  int arrival = 1;
};

/// As LEASEHOLD_FAULT wants it.
std::string text(const Fault& fault);

/// All runs with this action in this program, first arrivals and later ones.
std::vector<Fault> faults(Program program, Action action);

}  // namespace leasehold::testing

// SIGKILL and SIGSTOP at every fault point of broker, worker and tenant; promises checked from
// outside.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/fault/scenario.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

void each(Program program, Action action, void (*run)(const Fault&)) {
  for (const Fault& fault : faults(program, action)) {
    INFO("LEASEHOLD_FAULT=" << text(fault));
    run(fault);
  }
}

}  // namespace

TEST_CASE("faults: every fault point has a case") {
  for (int i = 0; i < kFaultSiteCount; ++i) {
    const auto site = static_cast<FaultSite>(i);
    INFO(name(site));
    CHECK(std::ranges::count(fault_cases(), site, &FaultCase::site) +
              std::ranges::count(fault_points_of_other_tests(), site) ==
          1);
  }
}

TEST_CASE("faults: a broker killed at any point restarts, and leases end at their deadlines") {
  each(Program::Broker, Action::Kill, broker_fails);
}

TEST_CASE("faults: under a broker stopped at any point leases end at their deadlines") {
  each(Program::Broker, Action::Stop, broker_fails);
}

TEST_CASE("faults: a worker killed at any point is fenced by its exit, and all others continue") {
  each(Program::Worker, Action::Kill, worker_fails);
}

TEST_CASE("faults: a worker stopped at any point is killed once memory is revoked") {
  each(Program::Worker, Action::Stop, worker_fails);
}

TEST_CASE("faults: a tenant killed at any point is revoked and scrubbed, and no other notices") {
  each(Program::Tenant, Action::Kill, tenant_fails);
}

TEST_CASE("faults: a tenant stopped at any point keeps its lease until the deadline") {
  each(Program::Tenant, Action::Stop, tenant_fails);
}

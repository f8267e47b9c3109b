#include "common/fault_point.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

#include "tests/support/child_process.hpp"

using namespace leasehold;

namespace {

constexpr int kRefused = 1;
constexpr int kSurvived = 2;

/// A child armed with `plan` reaches another site once, then one site `arrivals` times.
testing::ChildExit child_with(const char* plan, int arrivals) {
  return testing::run_in_child([&] {
    ::setenv("LEASEHOLD_FAULT", plan, 1);
    const auto armed = arm_fault_points_from_environment();
    if (!armed) return armed.error().code == Errc::BadRequest ? kRefused : -1;
    fault_point(FaultSite::WorkerUnitPolled);
    for (int i = 0; i < arrivals; ++i) fault_point(FaultSite::WorkerAttached);
    return kSurvived;
  });
}

}  // namespace

TEST_CASE("fault point: kill ends the process at the point") {
  CHECK(child_with("worker.attached:kill", 1).killed_by == SIGKILL);
}

TEST_CASE("fault point: stop stops the process at the point") {
  CHECK(child_with("worker.attached:stop", 1).stopped_by == SIGSTOP);
}

TEST_CASE("fault point: the plan's N-th arrival triggers it, no earlier one") {
  CHECK(child_with("worker.attached:kill:3", 2).exit_code == kSurvived);
  CHECK(child_with("worker.attached:kill:3", 3).killed_by == SIGKILL);
}

TEST_CASE("fault point: no other point triggers the plan") {
  CHECK(child_with("tenant.token.received:kill", 3).exit_code == kSurvived);
}

TEST_CASE("fault point: without a plan no point does anything") {
  const auto end = testing::run_in_child([] {
    ::unsetenv("LEASEHOLD_FAULT");
    if (!arm_fault_points_from_environment()) return kRefused;
    for (int i = 0; i < kFaultSiteCount; ++i) fault_point(static_cast<FaultSite>(i));
    return kSurvived;
  });
  CHECK(end.exit_code == kSurvived);
}

TEST_CASE("fault point: an invalid plan is rejected as a whole") {
  for (const char* plan :
       {"", ":", "kill", "worker.attached", "worker.attached:", "worker.attached:burn",
        "worker.attached: kill", "worker.attached:KILL", "nowhere:kill", "worker:kill",
        "worker.attached :kill", "worker.attached:kill:0", "worker.attached:kill:-1",
        "worker.attached:kill:", "worker.attached:kill:x", "worker.attached:kill:2x",
        "worker.attached:kill:2:3", "worker.attached:kill:99999999999999999999"}) {
    CAPTURE(plan);
    CHECK(child_with(plan, 1).exit_code == kRefused);
  }
}

TEST_CASE("fault point: every point has a unique dotted name that begins with its process") {
  std::set<std::string_view> names;
  for (int i = 0; i < kFaultSiteCount; ++i) {
    const std::string_view text = name(static_cast<FaultSite>(i));
    CAPTURE(text);
    CHECK(names.insert(text).second);
    CHECK((text.starts_with("broker.") || text.starts_with("worker.") ||
           text.starts_with("tenant.") || text.starts_with("cell.") ||
           text.starts_with("gateway.")));
  }
}

/// Programs that die while a worker fills the lease of an adapter.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/checks/local_system/fd_store.hpp"
#include "tests/process/system/adapter_system.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {
namespace {

/// The worker stops in the middle of a fill: units that fill the weights come before.
constexpr const char* kStopped = "worker.unit.polled:stop:100";

/// A worker that is stopped while it fills the adapter of ann's text.
struct FillingSystem {
  FillingSystem() {
    tenant = test.system.start_tenant(adapter_text("ann", "tuned"));
    REQUIRE(eventually([this] { return is_stopped(test.system.worker().pid()); }));
    REQUIRE(test.system.recorded<events::AdapterLoaded>().empty());
    REQUIRE(test.adapter_leases().size() == 1);
    lease = test.adapter_leases()[0].lease;
  }
  /// The text of another system, where nothing dies.
  static std::vector<std::int32_t> undisturbed() {
    AdapterSystem calm;
    return calm.system.undisturbed(adapter_text("ann", "tuned"));
  }

  TemporaryDirectory state = TemporaryDirectory::create("state").value();
  FdStore store;
  AdapterSystem test{{.broker_arguments = {"--state-dir", state.path(), "--reattach-grace-ms",
                                           "60000", "--allow-memory-check"},
                      .store = &store},
                     kStopped};
  std::unique_ptr<Tenant> tenant;
  LeaseId lease;
};

}  // namespace

TEST_CASE("adapters: what a worker had filled when it was killed is zero, and is loaded again") {
  const auto adapted = FillingSystem::undisturbed();
  FillingSystem filling;
  System& system = filling.test.system;
  const auto extents = required(runner::open_extents(system.view(), filling.lease));
  CHECK(std::ranges::any_of(
      extents, [](const runner::OpenedExtent& extent) { return extent.before.nonzero_bytes > 0; }));
  system.remove_worker("w1");
  CHECK(system.eventually_fenced(filling.lease));
  CHECK(eventually([&] { return all_zero_and_free(extents); }));
  filling.test.start_worker("w1");
  check_whole(*filling.tenant, adapted);
  CHECK(system.recorded<events::AdapterLoaded>().size() == 1);
}

/// The broker's tests cover which of two happens: the worker reports the lease as filled before it
/// has resumed, or the lease ends and the worker opens another one.
TEST_CASE("adapters: a text comes whole whose adapter is being filled when the broker is killed") {
  const auto adapted = FillingSystem::undisturbed();
  FillingSystem filling;
  System& system = filling.test.system;
  REQUIRE(system.broker().signal(SIGKILL).has_value());
  REQUIRE(eventually([&] { return system.broker().status().has_value(); }));
  REQUIRE(system.start_broker());
  REQUIRE(system.worker().signal(SIGCONT).has_value());
  check_whole(*filling.tenant, adapted);
  REQUIRE(filling.test.adapter_leases().size() == 1);
  const auto loaded = system.recorded<events::AdapterLoaded>();
  REQUIRE(loaded.size() == 1);
  CHECK(loaded[0].lease == filling.test.adapter_leases()[0].lease);
}

}  // namespace leasehold::testing

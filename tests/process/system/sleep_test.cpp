/// Workers that sleep: their texts wait and continue, and others use the memory of their weights.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/checks/local_system/fd_store.hpp"
#include "tests/support/system.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing::sleep {
namespace {

namespace fs = std::filesystem;

std::string drain_of(System& system, const std::string& worker) {
  const auto views = system.view().workers();
  if (!views) return {};  // the broker restarts
  const auto found = std::ranges::find(*views, worker, &wire::WorkerView::worker);
  return found == views->end() ? "" : found->drain;
}

/// True if the process maps weights or has a descriptor of them.
bool has_weights(pid_t pid) {
  const fs::path process = "/proc/" + std::to_string(pid);
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("leasehold-weights") != std::string::npos) return true;
  for (const fs::directory_entry& fd : fs::directory_iterator(process / "fd")) {
    std::error_code closed;
    const std::string target = fs::read_symlink(fd, closed).string();
    if (target.find("leasehold-weights") != std::string::npos) return true;
  }
  return false;
}

std::vector<std::string> service_states(System& system) {
  std::vector<std::string> states;
  for (const auto& service : system.recorded<events::WorkerService>())
    states.push_back(service.worker + " " + service.state);
  return states;
}

TenantSpec on(const std::string& worker, std::uint32_t tokens) {
  return {.tenant = "ann", .max_tokens = tokens, .more = {"--worker", worker}};
}

}  // namespace

TEST_CASE("worker sleep: texts continue byte for byte after each of five sleeps") {
  System system({.tenants = {"ann", "bob"}});
  const TenantSpec text{.tenant = "ann", .max_tokens = 200};
  const TenantSpec other{.tenant = "bob", .max_tokens = 3};
  const auto alone = system.undisturbed(text);
  const auto other_alone = system.undisturbed(other);
  const auto ann = system.start_streaming(text, 4);
  for (int cycle = 0; cycle < 5; ++cycle) {
    REQUIRE(system.brokerctl({"worker", "sleep", "w1", "--wait"}) == 0);
    CHECK(drain_of(system, "w1") == "asleep");
    CHECK(eventually([&] {
      return !has_weights(system.worker().pid()) && !has_weights(system.broker().pid());
    }));
    CHECK(system.brokerctl({"worker", "sleep", "w1", "--wait"}) == 0);  // asleep already
    if (cycle % 2 == 0) {
      CHECK(system.brokerctl({"worker", "wake", "w1", "--wait"}) == 0);
    } else {
      CHECK((system.undisturbed(other) == other_alone));
    }
    REQUIRE(ann->read_tokens(ann->record().tokens.size() + 8));
  }
  CHECK(has_weights(system.worker().pid()));
  check_whole(*ann, alone);
  CHECK(ann->record().leases.size() == 1);
  CHECK(eventually([&] { return service_states(system).size() == 15; }));
  CHECK(system.brokerctl({"worker", "sleep", "w9"}) == exit_code(Errc::UnknownWorker));
  CHECK(system.brokerctl({"worker", "wake", "w9"}) == exit_code(Errc::UnknownWorker));
}

TEST_CASE("worker sleep: a drain wakes the worker, so that its texts end") {
  System system({.tenants = {"ann"}});
  const TenantSpec text{.tenant = "ann", .max_tokens = 60};
  const auto alone = system.undisturbed(text);
  const auto ann = system.start_streaming(text, 4);
  REQUIRE(system.brokerctl({"worker", "sleep", "w1", "--wait"}) == 0);
  CHECK(system.brokerctl({"drain", "--worker", "w1", "--wait"}) == 0);
  check_whole(*ann, alone);
  CHECK(drain_of(system, "w1") == "drained");
}

TEST_CASE("worker sleep: two models take turns in memory for one, also after a broker restart") {
  const TemporaryDirectory state = TemporaryDirectory::create("state").value();
  FdStore store;
  System system({.broker_arguments = {"--state-dir", state.path(), "--reattach-grace-ms", "60000",
                                      "--weights-capacity", "2MiB"},
                 .tenants = {"ann"},
                 .store = &store});
  const std::string copy = system.directory() / "copy.gguf";
  fs::copy_file(bundled_model_path(), copy);
  const auto alone = system.undisturbed(on("w1", 20));
  REQUIRE(system.brokerctl({"worker", "sleep", "w1", "--wait"}) == 0);
  system.start_ready_worker_on(copy, "w2", {"--idle-sleep-after", "1"});
  CHECK((system.undisturbed(on("w2", 20)) == alone));

  // A request for w1 waits until w2 has been idle for a second.
  CHECK((system.undisturbed(on("w1", 20)) == alone));
  CHECK(drain_of(system, "w2") == "asleep");
  CHECK(system.brokerctl({"worker", "wake", "w2", "--wait"}) == exit_code(Errc::PoolExhausted));

  REQUIRE(system.start_broker());
  REQUIRE(eventually(
      [&] { return drain_of(system, "w1") == "serving" && drain_of(system, "w2") == "asleep"; }));
  REQUIRE(system.brokerctl({"worker", "sleep", "w1", "--wait"}) == 0);
  CHECK((system.undisturbed(on("w2", 20)) == alone));

  // Weights that cannot be restored put the worker out of service.
  REQUIRE(eventually([&] { return drain_of(system, "w2") == "asleep"; }));
  fs::resize_file(copy, fs::file_size(copy) / 2);
  CHECK(system.start_tenant(on("w2", 20))->finish() == exit_code(Errc::MissingWeight));
  CHECK(eventually([&] { return drain_of(system, "w2") == "out_of_service"; }));
}

}  // namespace leasehold::testing::sleep

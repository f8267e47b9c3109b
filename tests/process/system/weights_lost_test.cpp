/// A model file that changes or goes away under a running worker: no token of another content is
/// ever delivered, and the worker leaves service until the content is back.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/checks/local_system/fd_store.hpp"
#include "tests/support/system.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing::weights_lost {
namespace {

namespace fs = std::filesystem;

const std::string kText =
    "Once upon a time there was a little girl who lived in a small house near a big forest with "
    "her mother, her father and a cat that liked to sleep in the sun";

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// The bundled model with other weights in equal shapes.
std::string other_weights() {
  std::string bytes = file_bytes(bundled_model_path());
  for (std::size_t at = bytes.size() / 2; at < bytes.size(); at += 101)
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
  return bytes;
}

/// Replaces the file, as an operator would.
void rename_over(const std::string& path, const std::string& bytes) {
  write(path + ".new", bytes);
  fs::rename(path + ".new", path);
}

/// A worker w1 with a model file of its own, and two tenants.
struct Lossy {
  explicit Lossy(const std::vector<std::string>& more = {})
      : system({.broker_arguments = {"--state-dir", state.path(), "--reattach-grace-ms", "60000"},
                .worker_arguments = {"--slow-motion-us", "30"},
                .start_worker = false,
                .model_name = "model.gguf",
                .store = &store}),
        model(system.directory() / "model.gguf") {
    system.start_ready_worker("w1", {}, more);
    for (const char* tenant : {"ann", "bob"}) system.admit(tenant);
  }

  TenantSpec text(const std::string& tenant) const {
    return {.tenant = tenant, .prompt = kText + " and", .max_tokens = 100, .rebind = true};
  }
  /// Of w1.
  LeaseId engine_lease() {
    std::optional<LeaseId> found;
    for (const wire::LeaseView& lease : system.engine_leases()) {
      if (lease.state == LeaseState::Live && lease.worker == "w1") found = lease.lease;
    }
    return found.value();
  }
  wire::WorkerView view(const std::string& worker = "w1") {
    const auto views = system.view().workers().value();
    const auto found = std::ranges::find(views, worker, &wire::WorkerView::worker);
    REQUIRE(found != views.end());
    return *found;
  }
  /// Of w1; empty while a restarted broker does not know it.
  std::string drain() {
    const auto views = system.view().workers();
    if (!views) return {};
    const auto found = std::ranges::find(*views, "w1", &wire::WorkerView::worker);
    return found == views->end() ? "" : found->drain;
  }
  bool eventually_in_service() {
    return eventually([&] { return drain() == "serving"; });
  }
  bool eventually_out_of_service() {
    return eventually([&] { return drain() == "out_of_service"; });
  }
  std::vector<std::string> service_events() {
    std::vector<std::string> states;
    for (const auto& service : system.recorded<events::WorkerService>())
      states.push_back(service.state);
    return states;
  }
  /// On w1. Returns the exit code.
  int publish() {
    const std::string file = system.directory() / "text.txt";
    write(file, kText);
    return system.brokerctl({"prefix", "publish", "--file", file, "--worker", "w1"});
  }
  std::size_t live_leases(wire::LeaseScope scope) {
    const auto leases = system.view().leases().value();
    return static_cast<std::size_t>(std::ranges::count_if(leases, [&](const auto& lease) {
      return lease.scope == scope && lease.state == LeaseState::Live;
    }));
  }

  // They let a restarted broker keep its workers.
  TemporaryDirectory state = TemporaryDirectory::create("state").value();
  FdStore store;
  System system;
  std::string model;
};

}  // namespace

TEST_CASE("weights lost: other weights of equal shapes are never used, and the worker says so") {
  Lossy lossy;
  System& system = lossy.system;
  const auto alone = system.undisturbed(lossy.text("ann"));
  REQUIRE(lossy.publish() == 0);
  const auto ann = system.start_streaming(lossy.text("ann"), 10);

  SECTION("renamed over the model") {
    rename_over(lossy.model, other_weights());
  }
  SECTION("written into the model, with its old time") {
    const auto time = fs::last_write_time(lossy.model);
    write(lossy.model, other_weights());
    fs::last_write_time(lossy.model, time);
  }
  system.revoke_mid_request(lossy.engine_lease());

  CHECK(ann->finish() == exit_code(Errc::MissingWeight));
  CHECK(is_prefix(ann->record().tokens, alone));
  REQUIRE(lossy.eventually_out_of_service());
  CHECK(lossy.view().out_of_service->find(lossy.model) != std::string::npos);
  // What was computed before, also for other tenants, ends with the weights.
  CHECK(eventually([&] {
    return lossy.live_leases(wire::LeaseScope::Shared) +
               lossy.live_leases(wire::LeaseScope::Tenant) ==
           0;
  }));
  CHECK(lossy.service_events() == std::vector<std::string>{"out_of_service"});
  CHECK(system.start_tenant(lossy.text("bob"))->finish() == exit_code(Errc::MissingWeight));

  rename_over(lossy.model, file_bytes(bundled_model_path()));
  REQUIRE(lossy.eventually_in_service());
  CHECK(lossy.service_events() == std::vector<std::string>{"out_of_service", "in_service"});
  CHECK((system.undisturbed(lossy.text("bob")) == alone));
  CHECK((system.undisturbed(lossy.text("ann")) == alone));
}

TEST_CASE("weights lost: a part is not restored from other weights, part by part") {
  Lossy lossy({"--weights-scope", "layer"});
  System& system = lossy.system;
  const auto alone = system.undisturbed(lossy.text("ann"));
  const auto ann = system.start_streaming(lossy.text("ann"), 10);
  rename_over(lossy.model, other_weights());

  system.revoke_mid_request(lossy.engine_lease());

  CHECK(ann->finish() == exit_code(Errc::MissingWeight));
  CHECK(is_prefix(ann->record().tokens, alone));
}

TEST_CASE("weights lost: a copy of the same content and a deleted file change no text") {
  Lossy lossy;
  System& system = lossy.system;
  const auto alone = system.undisturbed(lossy.text("ann"));
  const auto ann = system.start_streaming(lossy.text("ann"), 10);
  SECTION("a copy") {
    rename_over(lossy.model, file_bytes(bundled_model_path()));
  }
  SECTION("deleted") {
    fs::remove(lossy.model);
  }

  system.revoke_mid_request(lossy.engine_lease());

  check_whole(*ann, alone);
  CHECK(ann->record().leases.size() == 1);
  CHECK(lossy.service_events().empty());
}

TEST_CASE("weights lost: a worker with a truncated file leaves its texts to one with a copy") {
  Lossy lossy;
  System& system = lossy.system;
  const auto alone = system.undisturbed(lossy.text("ann"));
  const auto ann = system.start_streaming(lossy.text("ann"), 10);
  const std::string copy = system.directory() / "copy.gguf";
  fs::copy_file(bundled_model_path(), copy);
  system.start_ready_worker_on(copy, "w2");

  fs::resize_file(lossy.model, fs::file_size(lossy.model) / 2);
  system.revoke_mid_request(lossy.engine_lease());

  check_whole(*ann, alone);
  REQUIRE(ann->record().leases.size() >= 2);
  CHECK(system.lease(ann->record().leases.back()).worker == "w2");
  // Without leases it has the fewest; no new text meets it.
  for (int i = 0; i < 8; ++i) CHECK((system.undisturbed(lossy.text("bob")) == alone));
  CHECK(lossy.view().drain == "out_of_service");
  CHECK(lossy.view("w2").drain == "serving");
  CHECK(lossy.publish() == exit_code(Errc::MissingWeight));

  rename_over(lossy.model, file_bytes(bundled_model_path()));
  REQUIRE(lossy.eventually_in_service());
  TenantSpec named = lossy.text("bob");
  named.more = {"--worker", "w1"};
  CHECK((system.undisturbed(named) == alone));
}

TEST_CASE("weights lost: an idle worker leaves service before a text meets it") {
  Lossy lossy;
  fs::resize_file(lossy.model, fs::file_size(lossy.model) / 2);
  REQUIRE(lossy.system.brokerctl({"revoke", to_string(lossy.engine_lease())}) == 0);
  CHECK(lossy.eventually_out_of_service());
}

TEST_CASE("weights lost: a restarted broker learns that the worker is out of service") {
  Lossy lossy;
  fs::resize_file(lossy.model, fs::file_size(lossy.model) / 2);
  REQUIRE(lossy.system.brokerctl({"revoke", to_string(lossy.engine_lease())}) == 0);
  REQUIRE(lossy.eventually_out_of_service());

  REQUIRE(lossy.system.start_broker());

  CHECK(lossy.eventually_out_of_service());
  rename_over(lossy.model, file_bytes(bundled_model_path()));
  CHECK(lossy.eventually_in_service());
}

}  // namespace leasehold::testing::weights_lost

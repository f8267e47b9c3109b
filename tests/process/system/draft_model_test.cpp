/// A worker with a draft model: its leases are its own, and losing one changes no text.
#include <catch2/catch.hpp>
#include <filesystem>

#include "common/machine/process.hpp"
#include "kernels/model/capacity_plan.hpp"
#include "tests/checks/local_system/fd_store.hpp"
#include "tests/process/http/http_client.hpp"
#include "tests/process/tools/program_run.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/system.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {
namespace {

/// A worker whose draft model is a copy of its model.
std::unique_ptr<System> system_with_draft(SystemSpec spec = {}) {
  spec.start_worker = false;
  auto system = std::make_unique<System>(std::move(spec));
  const std::string draft = system->directory() / "draft.gguf";
  std::filesystem::copy_file(bundled_model_path(), draft);
  system->start_ready_worker("w1", {}, {"--speculate", "4", "--draft-model", draft});
  return system;
}

wire::LeaseView engine_lease_on(System& system, const std::string& part) {
  for (const wire::LeaseView& lease : system.engine_leases())
    if (lease.part == part) return lease;
  FAIL("no engine lease covers " << part);
  return {};
}

/// The value of a counter that the worker shows.
double shown(System& system, const std::string& counter) {
  HttpClient client(logged_address(system, "metrics ready address="));
  client.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string page = client.reply().body;
  const std::size_t at = page.find("\n" + counter + " ");
  return at == std::string::npos ? 0 : std::stod(page.substr(at + counter.size() + 2));
}

}  // namespace

TEST_CASE("draft model: one with recurrent layers proposes, in the memory that the plan says") {
  const GeneratedModel model(family_named("qwen35moe, q8_0"));
  const GeneratedModel draft(family_named("qwen35moe, q8_0"));  // a file with leases of its own
  const TenantSpec spec{.tenant = "ann", .max_tokens = 100};
  const auto text = [&](System& system, const std::vector<std::string>& more) {
    system.start_ready_worker_on(model.path(), "w1", more);
    system.admit("ann");
    return system.undisturbed(spec);
  };
  System plain({.start_worker = false});
  const auto alone = text(plain, {});
  System system({.start_worker = false});
  CHECK((text(system, {"--speculate", "4", "--draft-model", draft.path(), "--draft-context", "200",
                       "--max-batch-size", "3", "--metrics", "127.0.0.1:0"}) == alone));
  // The page is a copy of each second.
  CHECK(eventually([&] { return shown(system, "leasehold_accepted_tokens_total") > 0; }));
  CHECK(shown(system, "leasehold_draft_model_live") == 1);

  const CapacityPlan plan = plan_capacity({.model = model.path(),
                                           .draft_model = draft.path(),
                                           .draft_context = 200,
                                           .max_batch_size = 3},
                                          0)
                                .value();
  CHECK(engine_lease_on(system, "model").size_bytes == plan.weights_bytes);
  CHECK(engine_lease_on(system, "draft").size_bytes == plan.draft_weights_bytes);
  CHECK(engine_lease_on(system, "draft.kv").size_bytes == plan.draft_texts_bytes);
}

TEST_CASE("draft model: a lease of it revoked in mid-text ends the proposals and nothing else") {
  const std::string part = GENERATE("draft", "draft.kv");
  CAPTURE(part);
  const TenantSpec spec{.tenant = "ann", .max_tokens = 100};
  const auto alone = System::alone(spec);
  const auto system = system_with_draft();
  REQUIRE(system->engine_leases().size() == 3);
  system->admit("ann");
  const auto ann = system->start_streaming(spec, 20);
  const LeaseId lease = engine_lease_on(*system, part).lease;
  // Both leases of the draft have names that begin so; a lease is revoked by its id.
  system->revoke_mid_request(lease);

  check_whole(*ann, alone);
  CHECK(system->eventually_fenced(lease));
  CHECK(engine_lease_on(*system, "model").state == LeaseState::Live);
  // Another thread writes the log.
  CHECK(eventually([&] { return count_of(system->worker_log(), "drafting is off") == 1; }));
  CHECK_THAT(system->worker_log(), Catch::Contains("lease=" + to_string(lease)));
  CHECK((system->undisturbed(spec) == alone));
  CHECK_FALSE(has_exited(system->worker().pidfd()));
}

TEST_CASE("draft model: a model that is its own draft shares the lease of the weights") {
  const TenantSpec spec{.tenant = "ann", .max_tokens = 100};
  const auto alone = System::alone(spec);
  System system({.start_worker = false});
  system.start_ready_worker("w1", {}, {"--speculate", "4", "--draft-model", bundled_model_path()});
  REQUIRE(system.engine_leases().size() == 2);
  system.admit("ann");
  const auto ann = system.start_streaming(spec, 20);
  const LeaseId lease = engine_lease_on(system, "model").lease;
  system.revoke_mid_request(lease);

  check_whole(*ann, alone);
  CHECK(system.eventually_fenced(lease));
  CHECK(count_of(system.worker_log(), "drafting is off") == 1);
  CHECK(count_of(system.worker_log(), "weights restored") == 1);
}

TEST_CASE("draft model: a restart of the broker ends the proposals and no text") {
  const TenantSpec spec{.tenant = "ann", .max_tokens = 200};
  const auto alone = System::alone(spec);
  const auto state = TemporaryDirectory::create("state").value();
  FdStore store;
  const auto system = system_with_draft(
      {.broker_arguments = {"--state-dir", state.path(), "--reattach-grace-ms", "60000"},
       .store = &store});
  system->admit("ann", {"--ttl-ms", "20000"});
  const auto ann = system->start_streaming(spec, 20);
  const LeaseId memory = engine_lease_on(*system, "draft.kv").lease;
  REQUIRE(system->start_broker());

  check_whole(*ann, alone);
  CHECK(system->eventually_fenced(memory));
  CHECK((system->undisturbed(spec) == alone));
  // On a busy machine drafting does not pay, and nothing finds its leases lost.
  CHECK(count_of(system->worker_log(), "drafting is off") <= 1);
  CHECK(engine_lease_on(*system, "model").state == LeaseState::Live);
}

TEST_CASE("draft model: another vocabulary, or nothing to propose, is refused at the start") {
  System system({.start_worker = false});
  const auto refused = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"--broker", system.broker_socket(),
                                       "--model",  bundled_model_path(),
                                       "--listen", system.directory() / "refused.sock"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramRun run("leasehold-worker", arguments);
    const int code = run.finish([] {});
    return std::pair(code, run.errors());
  };
  const GeneratedModel other(family_named("qwen2"));
  const auto [code, error] = refused({"--speculate", "4", "--draft-model", other.path()});
  CHECK(code == exit_code(Errc::UnsupportedModel));
  CHECK_THAT(error, Catch::Contains(other.path()) && Catch::Contains(bundled_model_path()) &&
                        Catch::Contains("different vocabularies"));
  const auto [idle, idle_error] = refused({"--draft-model", bundled_model_path()});
  CHECK(idle == 2);
  CHECK_THAT(idle_error, Catch::Contains("--speculate"));
}

}  // namespace leasehold::testing

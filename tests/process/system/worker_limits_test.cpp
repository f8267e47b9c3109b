/// The worker's own limits: which settings it refuses, and what each does.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "ipc/control/event_file.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/process/tools/program_run.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

using control::Client;

/// A lease and a connection to submit requests under it.
class Holder {
 public:
  Holder(System& system, const std::string& tenant)
      : broker_(Client::connect(system.broker_socket()).value()) {
    system.admit(tenant);
    lease_ = acquire(broker_, tenant);
    worker_.emplace(connect_to_worker(lease_));
  }

  /// Nothing when the request is queued.
  std::optional<Errc> submit() {
    const wire::RequestSubmit request{.token = lease_.token,
                                      .request_id = {mint_request_id()},
                                      .prompt = "Once upon a time",
                                      .max_emitted_tokens = 4};
    const auto reply = worker_->call("request.submit", {.body = request.to_json()});
    if (reply) return std::nullopt;
    return reply.error().code;
  }

 private:
  Client broker_;
  wire::LeaseAcquired lease_;
  std::optional<Client> worker_;
};

/// The steps in the event log of the only worker.
std::vector<events::BatchedDecodeStep> steps_of(const System& system) {
  std::vector<events::BatchedDecodeStep> steps;
  for (const EventLogFile& log : system.event_logs()) {
    if (log.name != "w1") continue;
    const auto read = events::read_event_file(log.path).value();
    for (const events::StampedEvent& stamped : read) {
      if (const auto* step = std::get_if<events::BatchedDecodeStep>(&stamped.event))
        steps.push_back(*step);
    }
  }
  return steps;
}

/// The exit code and the error of a worker with this option, which must not start.
std::pair<int, std::string> refused(System& system, std::vector<std::string> more) {
  std::vector<std::string> arguments{"--broker", system.broker_socket(),
                                     "--model",  bundled_model_path(),
                                     "--listen", system.directory() / "refused.sock"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  ProgramRun run("leasehold-worker", arguments);
  const int code = run.finish([] {});
  return {code, run.errors()};
}

}  // namespace

TEST_CASE("worker limits: a setting that cannot work is refused with what fits") {
  System system({.start_worker = false});
  for (const auto& [option, value] : {std::pair{"--max-batch-size", "0"},
                                      {"--max-batch-size", "65"},
                                      {"--token-budget", "16385"},
                                      {"--max-context", "1"},
                                      {"--max-waiting", "0"},
                                      {"--max-waiting-per-lease", "4001"}}) {
    CAPTURE(option, value);
    const auto [code, error] = refused(system, {option, value});
    CHECK(code == 2);
    CHECK_THAT(error, Catch::Contains(option));
  }
  const auto [narrow, narrow_error] = refused(system, {"--token-budget", "32"});
  CHECK(narrow == 2);
  CHECK_THAT(narrow_error,
             Catch::Contains("a budget of at least 64 or a batch size of at most 32"));
  const auto [deep, deep_error] = refused(system, {"--max-context", "513"});
  CHECK(deep == exit_code(Errc::BadRequest));
  CHECK_THAT(deep_error, Catch::Contains("the model's context holds 512 tokens"));
}

TEST_CASE("worker limits: --max-context bounds a request and the answer to it") {
  System system({.worker_arguments = {"--max-context", "40"}, .tenants = {"ann"}});
  const auto too_long = system.start_tenant({.tenant = "ann", .prompt = std::string(90, '7')});
  CHECK(too_long->finish() == exit_code(Errc::PromptTooLong));
  CHECK_THAT(too_long->record().failed.value_or(""),
             Catch::Contains("this worker's --max-context holds 40"));
  const auto filled = system.start_tenant({.tenant = "ann"});
  CHECK(filled->finish() == 0);
  CHECK(filled->record().completed == "ContextFull");
  CHECK(filled->record().tokens.size() < 40);
  CHECK_THAT(system.worker_log(), Catch::Contains("max_context=40"));
}

TEST_CASE("worker limits: batch size and queues hold as many requests as they are set to") {
  System system({.worker_arguments = {"--slow-motion-us", "1000", "--max-batch-size", "1",
                                      "--max-waiting", "2", "--max-waiting-per-lease", "1"},
                 .tenants = {"bob"}});
  const auto running = system.start_streaming({.tenant = "bob", .max_tokens = 400}, 1);
  Holder ann(system, "ann");
  Holder cid(system, "cid");
  Holder dan(system, "dan");
  CHECK(ann.submit() == std::nullopt);
  CHECK(ann.submit() == Errc::QuotaConcurrent);
  CHECK(cid.submit() == std::nullopt);
  CHECK(dan.submit() == Errc::QueueFull);

  CHECK(running->read_tokens(5));  // steps that could have admitted those that wait
  const auto steps = steps_of(system);
  CHECK(steps.size() >= 5);
  CHECK(std::ranges::all_of(steps, [](const auto& step) { return step.n_seqs == 1; }));
}

TEST_CASE("worker limits: a step computes at most --token-budget tokens") {
  System system(
      {.worker_arguments = {"--max-batch-size", "4", "--token-budget", "4"}, .tenants = {"ann"}});
  const TenantSpec request{
      .tenant = "ann", .prompt = "Once upon a time there was a little fox", .max_tokens = 8};
  CHECK(system.undisturbed(request) == System::alone(request));
  const auto steps = steps_of(system);
  REQUIRE(steps.size() > 8);
  CHECK(steps[0].per_seq_kv_positions == std::vector<std::uint32_t>{4});
  CHECK(steps[1].per_seq_kv_positions == std::vector<std::uint32_t>{8});
}

}  // namespace leasehold::testing

#include "tools/brokerctl/changes/sleep.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/waiting_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

wire::WorkerView sleeper(std::string drain, std::string state = "ready") {
  return {.worker = "w1", .pid = 7, .state = std::move(state), .drain = std::move(drain)};
}

Result<void> wake_and_wait(WaitingBroker& broker) {
  broker.replies["worker.wake"] = {wire::Empty{}.to_json()};
  return run({.verb = WakeWorker{.message = {.worker = "w1"}, .wait = true}},
             broker.dependencies());
}

}  // namespace

TEST_CASE("worker sleep: the command line names one worker, under either noun") {
  const std::string noun = GENERATE("worker", "workers");
  const auto sleep =
      parse_arguments(std::vector<std::string>{noun, "sleep", "w1", "--wait", "--timeout-ms", "5"});
  REQUIRE(sleep);
  CHECK(std::get<SleepWorker>(sleep->verb).message.worker == "w1");
  CHECK(std::get<SleepWorker>(sleep->verb).timeout_ms == 5);
  const auto wake = parse_arguments(std::vector<std::string>{noun, "wake", "w1"});
  REQUIRE(wake);
  CHECK_FALSE(std::get<WakeWorker>(wake->verb).wait);
  CHECK_FALSE(parse_arguments(std::vector<std::string>{noun, "sleep"}));
  CHECK_FALSE(parse_arguments(std::vector<std::string>{noun, "sleep", "w1", "--timeout-ms", "5"}));
}

TEST_CASE("worker sleep: prints the leases, and with --wait their clocks") {
  WaitingBroker broker;
  broker.replies["worker.sleep"] = {wire::LeasesTouched{.leases = {{4, 2}}}.to_json()};
  const bool waits = GENERATE(false, true);
  const wire::LeaseView lease{.lease = {4, 2},
                              .scope = wire::LeaseScope::Engine,
                              .worker = "w1",
                              .state = LeaseState::Fenced,
                              .reason = RevokeReason::WorkerAsleep,
                              .clocks = {.reuse_ns = 7'000'000}};
  broker.replies["lease.wait"] = {waited({lease})};
  REQUIRE(run({.verb = SleepWorker{.message = {.worker = "w1"}, .wait = waits}},
              broker.dependencies()));
  CHECK_THAT(broker.out.str(),
             Catch::Contains("4.2") && Catch::Contains(waits ? "worker_asleep" : "ASLEEP"));
}

TEST_CASE("worker sleep: a worker that is asleep already is accepted") {
  WaitingBroker broker;
  broker.replies["worker.sleep"] = {wire::LeasesTouched{}.to_json()};
  REQUIRE(
      run({.verb = SleepWorker{.message = {.worker = "w1"}, .wait = true}}, broker.dependencies()));
  CHECK_THAT(broker.out.str(), Catch::Contains("w1"));
}

TEST_CASE("worker wake: waits until the worker has its weights") {
  WaitingBroker broker;
  broker.replies["worker.list"] = {
      items<wire::WorkerView>({sleeper("serving", "gone"), sleeper("waking")}),
      items<wire::WorkerView>({sleeper("serving", "gone"), sleeper("serving")})};
  REQUIRE(wake_and_wait(broker));
  CHECK_THAT(broker.out.str(), Catch::Contains("serving"));
}

TEST_CASE("worker wake: a worker that stays without weights is an error that says what to do") {
  WaitingBroker broker;
  const auto error_with = [&](wire::WorkerView last) {
    broker.replies["worker.list"] = {items<wire::WorkerView>({sleeper("waking")}),
                                     items<wire::WorkerView>({std::move(last)})};
    return wake_and_wait(broker).error();
  };
  const Error asleep = error_with(sleeper("asleep"));
  CHECK(asleep.code == Errc::PoolExhausted);
  CHECK_THAT(asleep.detail, Catch::Contains("brokerctl events"));
  wire::WorkerView lost = sleeper("out_of_service");
  lost.out_of_service = "m.gguf is gone";
  CHECK(error_with(lost).code == Errc::MissingWeight);
  CHECK(error_with(sleeper("waking", "lost")).code == Errc::UnknownWorker);
  CHECK(error_with(sleeper("waking")).code == Errc::TimedOut);
}

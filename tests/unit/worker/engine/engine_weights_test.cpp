// What requests get that arrive while a part of the weights is revoked.
#include <catch2/catch.hpp>

#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {
namespace {

struct LostWeights {
  explicit LostWeights(SchedulerLimits limits = {}) : rig({.limits = limits}) {
    rig.revoke(rig.engine_lease());
  }
  PromptRequest request(const std::string& id) const {
    return rig.request("t", lease, id, rig.encode("Once upon a time"), 5);
  }
  PromptRequest rebind(const std::string& id) const {
    PromptRequest request = this->request(id);
    request.rebound_from = LeaseId{200, 1};
    return request;
  }

  EngineRig rig;
  LeaseId lease = rig.grant("t");
};

}  // namespace

TEST_CASE("engine weights: requests that arrive during a restore wait and then run") {
  LostWeights lost;
  for (int i = 0; i < 40; ++i) REQUIRE(lost.rig.submit(lost.request("r" + std::to_string(i))));
  const std::uint64_t units = lost.rig.units_run();
  const Error error = lost.rig.step().error();
  CHECK(error.code == Errc::WeightsLoading);
  CHECK(error.scope == FailureScope::Engine);
  CHECK(lost.rig.units_run() == units);
  CHECK(lost.rig.engine().scheduler().tenancies().waiting_count() == 40);

  lost.rig.restore_weights();
  lost.rig.run();
  for (int i = 0; i < 40; ++i) {
    const RequestOutcome& outcome = lost.rig.outcome("r" + std::to_string(i));
    REQUIRE(outcome.completions.size() == 1);
    CHECK(outcome.completions[0].reason == CompletionReason::MaxTokensReached);
    CHECK(outcome.tokens == lost.rig.outcome("r0").tokens);
  }
}

TEST_CASE("engine weights: beyond the queue's bounds a request is WeightsLoading, not a quota") {
  const bool per_lease = GENERATE(true, false);
  LostWeights lost(per_lease ? SchedulerLimits{.max_waiting_per_lease = 2}
                             : SchedulerLimits{.max_waiting = 4});
  for (const char* id : {"a", "b"}) REQUIRE(lost.rig.submit(lost.request(id)));
  const Error error = lost.rig.submit(lost.request("c")).error();
  CHECK(error.code == Errc::WeightsLoading);
  CHECK(error.scope == FailureScope::Engine);

  lost.rig.restore_weights();
  CHECK(lost.rig.submit(lost.request("c")).error().code ==
        (per_lease ? Errc::QuotaConcurrent : Errc::QueueFull));
}

TEST_CASE("engine weights: a request that can never run is refused during a restore, too") {
  LostWeights lost;
  PromptRequest empty = lost.request("r");
  empty.prompt.clear();
  CHECK(lost.rig.submit(empty).error().code == Errc::BadRequest);
  PromptRequest huge = lost.request("r");
  huge.max_emitted_tokens = 1u << 20;
  huge.prompt.assign(10'000, 1);
  CHECK(lost.rig.submit(huge).error().code == Errc::PromptTooLong);
}

TEST_CASE("engine weights: a waiting request ends at its deadline or with its lease") {
  LostWeights lost;
  PromptRequest late = lost.request("late");
  late.deadline = lost.rig.clock().now() + Duration(5);
  REQUIRE(lost.rig.submit(late));
  REQUIRE(lost.rig.submit(lost.request("revoked")));
  lost.rig.clock().advance(Duration(5));
  (void)lost.rig.step();
  const auto deadline = lost.rig.engine().take_events();
  REQUIRE(deadline.size() == 1);
  CHECK(std::get<Completed>(deadline[0]).reason == CompletionReason::DeadlineExceeded);

  lost.rig.revoke(lost.lease);
  (void)lost.rig.step();
  const auto revoked = lost.rig.engine().take_events();
  REQUIRE(revoked.size() == 1);
  CHECK(std::get<Completed>(revoked[0]).reason == CompletionReason::Revoked);
  CHECK(std::get<Completed>(revoked[0]).revocation->lease == lost.lease);
}

TEST_CASE("engine weights: a rebind during a restore is EngineLeaseFenced once and then waits") {
  LostWeights lost;
  const Error error = lost.rig.submit(lost.rebind("r")).error();
  CHECK(error.code == Errc::EngineLeaseFenced);
  CHECK(error.scope == FailureScope::Engine);
  CHECK(is_retryable(error.code));
  REQUIRE(lost.rig.submit(lost.request("new")));  // not a rebind
  REQUIRE(lost.rig.submit(lost.rebind("r")));
  lost.rig.restore_weights();
  lost.rig.run();
  CHECK(lost.rig.outcome("r").tokens == lost.rig.outcome("new").tokens);

  // The next restore is another one.
  lost.rig.revoke(lost.rig.engine_lease());
  CHECK(lost.rig.submit(lost.rebind("r")).error().code == Errc::EngineLeaseFenced);
}

TEST_CASE("engine weights: a refused rebind waits also when the weights are lost again meanwhile") {
  LostWeights lost;
  REQUIRE(lost.rig.submit(lost.rebind("r")).error().code == Errc::EngineLeaseFenced);
  lost.rig.restore_weights();
  lost.rig.revoke(lost.rig.engine_lease());
  CHECK(lost.rig.submit(lost.rebind("r")));
}

TEST_CASE("engine weights: a refused rebind that finds no place is not EngineLeaseFenced again") {
  LostWeights lost({.max_waiting_per_lease = 1});
  REQUIRE(lost.rig.submit(lost.request("first")));
  REQUIRE(lost.rig.submit(lost.rebind("r")).error().code == Errc::EngineLeaseFenced);
  for (int i = 0; i < 3; ++i)
    CHECK(lost.rig.submit(lost.rebind("r")).error().code == Errc::WeightsLoading);
}

TEST_CASE("engine weights: one tenant's refused rebinds do not make another's refused twice") {
  LostWeights lost;
  const LeaseId greedy = lost.rig.grant("greedy");
  REQUIRE(lost.rig.submit(lost.rebind("r")).error().code == Errc::EngineLeaseFenced);
  for (int i = 0; i < 1'500; ++i) {
    PromptRequest rebind = lost.rebind("g" + std::to_string(i));
    rebind.tenant = {"greedy"};
    rebind.lease = greedy;
    REQUIRE(lost.rig.submit(rebind).error().code == Errc::EngineLeaseFenced);
  }
  CHECK(lost.rig.submit(lost.rebind("r")));
}

TEST_CASE("engine weights: an error that ends every request has engine scope") {
  LostWeights lost;
  REQUIRE(lost.rig.submit(lost.request("r")));
  lost.rig.engine().end_all({Errc::BrokerLost, "no broker"});
  const auto events = lost.rig.engine().take_events();
  REQUIRE(events.size() == 1);
  CHECK(std::get<Completed>(events[0]).error->scope == FailureScope::Engine);
}

}  // namespace leasehold::testing

/// Every early end of a request has its own type, acts within one unit, and affects no other
/// request.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/property/damaged_model.hpp"
#include "tests/property/four_tenants.hpp"
#include "worker/lease/deadline_watcher.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kVictim = 1;
constexpr SequenceMask kVictimBit = SequenceMask{1} << kVictim;

/// One way to stop the victim, and the expected end.
struct Stop {
  std::string what;
  std::function<void(FourTenants&)> act;
  CompletionReason reason;
  std::optional<RevokeReason> revocation;
};

/// Acts as the deadline watcher does at a deadline.
void expire_deadlines(FourTenants& scenario) {
  scenario.rig.clock().advance(std::chrono::seconds(10));
  scenario.rig.running_requests().stop_due([&](const RunningRequest& running_request) {
    return deadline_stop(running_request,
                         {.deadline = scenario.rig.table().deadline(running_request.lease)},
                         scenario.rig.clock().now());
  });
}

std::vector<Stop> every_stop() {
  return {{"cancel",
           [](FourTenants& scenario) {
             scenario.rig.running_requests().stop(RequestId{"r1"}, LocalStop::Cancelled);
           },
           CompletionReason::Cancelled, std::nullopt},
          {"the request's deadline",
           [](FourTenants& scenario) {
             scenario.rig.running_requests().stop(RequestId{"r1"}, LocalStop::DeadlineExceeded);
           },
           CompletionReason::DeadlineExceeded, std::nullopt},
          {"the lease's deadline in the table",
           [](FourTenants& scenario) {
             scenario.rig.set_deadline(scenario.lease(kVictim),
                                       scenario.rig.clock().now() + std::chrono::seconds(5));
             expire_deadlines(scenario);
           },
           CompletionReason::Revoked, RevokeReason::TtlExpired},
          {"the broker",
           [](FourTenants& scenario) {
             scenario.rig.revoke(scenario.lease(kVictim), RevokeReason::PolicyChanged);
           },
           CompletionReason::Revoked, RevokeReason::PolicyChanged}};
}

void check_stop(FourTenants& scenario, const Stop& stop, std::size_t k) {
  scenario.begin();
  const std::vector<TokenId> before = scenario.outcome(kVictim).tokens;
  REQUIRE(scenario.watched_step(k, [&] { stop.act(scenario); }));
  REQUIRE(scenario.watch.units_after_act(kVictimBit).empty());
  const RequestOutcome& outcome = scenario.outcome(kVictim);
  REQUIRE(outcome.tokens == before);
  REQUIRE(outcome.completions.size() == 1);
  REQUIRE(outcome.completions[0].reason == stop.reason);
  REQUIRE(outcome.completions[0].emitted_tokens == before.size());
  REQUIRE(outcome.completions[0].revocation.has_value() == stop.revocation.has_value());
  if (stop.revocation) REQUIRE(outcome.completions[0].revocation->reason == *stop.revocation);
  REQUIRE(scenario.rig.early_completions().size() == 1);
  scenario.rig.run();
  REQUIRE(outcome.completions.size() == 1);
  scenario.end();
}

}  // namespace

TEST_CASE("typed ends: a stop within a step acts before the next unit and keeps its reason") {
  FourTenants scenario({.threads = 1});
  const std::size_t units = scenario.run_undisturbed().units.size();
  for (const Stop& stop : every_stop()) {
    for (std::size_t k = 0; k + 1 < units; k += 37) {
      CAPTURE(stop.what, k, units);
      check_stop(scenario, stop, k);
    }
  }
}

TEST_CASE(
    "commit: a word stored before the Commit unit discards the token, and within it does not") {
  FourTenants scenario({.threads = 1});
  const std::size_t units = scenario.run_undisturbed().units.size();
  for (const bool in_commit : {false, true}) {
    CAPTURE(in_commit);
    scenario.begin();
    REQUIRE(scenario.watched_step(units - (in_commit ? 1 : 2),
                                  [&] { scenario.rig.revoke(scenario.lease(kVictim)); }));
    REQUIRE(scenario.watch.units()[units - 2].site == LaunchSite::Sampling);
    REQUIRE(scenario.outcome(kVictim).tokens.size() == (in_commit ? 3 : 2));
    REQUIRE(scenario.rig.early_completions().size() == (in_commit ? 0 : 1));
    scenario.rig.run();
    REQUIRE(scenario.outcome(kVictim).completions.size() == 1);
    REQUIRE(scenario.outcome(kVictim).completions[0].emitted_tokens == (in_commit ? 3 : 2));
    scenario.end();
  }
}

TEST_CASE(
    "typed ends: each row is sampled in a unit of its own, and a revoked row is not sampled") {
  FourTenants scenario({.threads = 1});
  const auto units = scenario.run_undisturbed().units;
  const auto first = std::ranges::find(units, LaunchSite::Sampling, &WatchedUnit::site);
  REQUIRE(std::ranges::count(units, LaunchSite::Sampling, &WatchedUnit::site) ==
          FourTenants::kTenants);
  scenario.begin();
  REQUIRE(scenario.watched_step(static_cast<std::size_t>(first - units.begin()),
                                [&] { scenario.rig.revoke(scenario.lease(kVictim)); }));
  const auto watched = scenario.watch.units();
  REQUIRE(std::ranges::count_if(watched, [](const WatchedUnit& unit) {
            return unit.site == LaunchSite::Sampling && (unit.live & kVictimBit) != 0;
          }) == 1);  // the unit of the act
  REQUIRE(scenario.watch.units_after_act(kVictimBit).empty());
  REQUIRE(scenario.outcome(kVictim).completions.size() == 1);
  scenario.end();
}

TEST_CASE("typed ends: after a sequence ended early no logits are left to read") {
  FourTenants scenario({.threads = 1});
  scenario.begin();
  REQUIRE(scenario.watched_step(5, [&] { scenario.rig.revoke(scenario.lease(kVictim)); }));
  for (std::uint32_t t = 0; t < FourTenants::kTenants; ++t)
    REQUIRE(scenario.rig.engine().last_logits(RequestId{scenario.request_id(t)}).empty());
  REQUIRE(scenario.rig.step());
  REQUIRE_FALSE(scenario.rig.engine().last_logits(RequestId{"r0"}).empty());
  scenario.rig.revoke(scenario.lease(0));
  REQUIRE(scenario.rig.step());
  REQUIRE(scenario.rig.engine().last_logits(RequestId{"r0"}).empty());
}

TEST_CASE("typed ends: after a running sequence is stopped or cancelled no logits are left") {
  const bool stopped = GENERATE(false, true);
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  for (const char* id : {"ends", "stays", "waits"})
    REQUIRE(rig.submit(rig.request("t", lease, id, rig.encode(prompts()[0]), 6)));
  rig.engine().submissions().set_quota(
      {.tenant = {"t"}, .max_concurrent = 2, .max_blocks = 1u << 20});
  REQUIRE(rig.step());
  REQUIRE(rig.engine().cancel(RequestId{"waits"}));
  REQUIRE_FALSE(rig.engine().last_logits(RequestId{"stays"}).empty());  // it had no scratch

  if (stopped) {
    REQUIRE(rig.running_requests().stop(RequestId{"ends"}, LocalStop::DeadlineExceeded));
    rig.engine().end_stopped();
  } else {
    REQUIRE(rig.engine().cancel(RequestId{"ends"}));
  }

  for (const char* id : {"ends", "stays"}) CHECK(rig.engine().last_logits(RequestId{id}).empty());
  rig.run();
  CHECK(rig.outcome("stays").tokens.size() == 6);
}

TEST_CASE("typed ends: a lease revoked after the look between two steps ends at its first unit") {
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  REQUIRE(rig.submit(rig.request("t", lease, "r", rig.encode(prompts()[0]), 6)));
  REQUIRE(rig.step());
  rig.engine().end_stopped();
  rig.revoke(lease);
  const auto report = rig.engine().step();
  REQUIRE(report);
  CHECK(report->events.empty());  // the gate reported the end within the step
  CHECK(rig.completion("r").reason == CompletionReason::Revoked);
  CHECK(rig.completion("r").emitted_tokens == 1);
}

TEST_CASE("typed ends: a NaN in one request's forward pass ends only that request") {
  EngineRig sound;
  const std::vector<TokenId> prompt = sound.encode(prompts()[0]);
  const LeaseId calm = sound.grant("t");
  REQUIRE(sound.submit(sound.request("t", calm, "good", prompt, 6)));
  sound.run();
  const std::vector<TokenId> expected = sound.outcome("good").tokens;

  const auto used = [&](TokenId token) {
    return std::ranges::count(prompt, token) + std::ranges::count(expected, token) > 0;
  };
  TokenId poisoned = 300;
  while (used(poisoned)) ++poisoned;
  const std::string model = model_with_nan_embedding(poisoned);
  EngineRig rig({.model_path = model});
  std::filesystem::remove(model);
  REQUIRE_FALSE(rig.config().tied_embeddings);
  const LeaseId good = rig.grant("t");
  const LeaseId bad = rig.grant("u");
  REQUIRE(rig.submit(rig.request("t", good, "good", prompt, 6)));
  REQUIRE(rig.submit(rig.request("u", bad, "bad", {prompt[0], poisoned}, 6)));
  rig.run();
  REQUIRE(rig.outcome("good").tokens == expected);
  REQUIRE(rig.outcome("bad").tokens.empty());
  REQUIRE(rig.completion("bad").reason == CompletionReason::EngineError);
  REQUIRE(rig.completion("bad").error->code == Errc::NumericFault);
}

TEST_CASE("typed ends: a request that reuses id, lease and stop slot of a cancelled one runs") {
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  const PromptRequest request = rig.request("t", lease, "r", rig.encode(prompts()[0]), 3);
  REQUIRE(rig.submit(request));
  REQUIRE(rig.step());
  REQUIRE(rig.running_requests().stop(request.engine_request_id, LocalStop::Cancelled));
  REQUIRE(rig.engine().cancel(request.engine_request_id));
  REQUIRE(rig.submit(request));
  rig.run();
  REQUIRE(rig.outcome("r").completions.size() == 2);
  REQUIRE(rig.outcome("r").completions[0].reason == CompletionReason::Cancelled);
  REQUIRE(rig.outcome("r").completions[1].reason == CompletionReason::MaxTokensReached);
}

TEST_CASE("typed ends: a lease ends at its deadline, and without a broker with BrokerLost") {
  for (const bool disconnected : {false, true}) {
    CAPTURE(disconnected);
    const Errc refusal = disconnected ? Errc::BrokerLost : Errc::LeaseRevoked;
    EngineRig rig;
    const LeaseId lease = rig.grant("t");
    const PromptRequest request = rig.request("t", lease, "r", rig.encode(prompts()[0]), 9);
    REQUIRE(rig.submit(request));
    rig.set_deadline(lease, rig.clock().now() + std::chrono::seconds(1));
    rig.set_broker_disconnected(disconnected);
    REQUIRE(rig.step());
    rig.clock().advance(std::chrono::seconds(1));
    REQUIRE(rig.submit(request).error().code == refusal);
    REQUIRE(rig.submit(request).error().scope == FailureScope::Tenant);
    REQUIRE(rig.step());
    REQUIRE(rig.submit(request).error().code == refusal);
    REQUIRE(rig.outcome("r").tokens.size() == 1);
    const Completed& end = rig.completion("r");
    REQUIRE((end.reason == CompletionReason::EngineError) == disconnected);
    if (disconnected) REQUIRE(end.error->code == Errc::BrokerLost);
    if (disconnected) REQUIRE(end.error->scope == FailureScope::Tenant);
    if (!disconnected) REQUIRE(end.revocation->reason == RevokeReason::TtlExpired);
  }
}

TEST_CASE("typed ends: a draining lease refuses new requests and finishes accepted ones") {
  EngineRig rig;
  const LeaseId lease = rig.grant("t", 1, 1);
  REQUIRE(rig.submit(rig.request("t", lease, "r", rig.encode(prompts()[0]), 4)));
  REQUIRE(rig.step());
  REQUIRE(rig.submit(rig.request("t", lease, "waits", rig.encode(prompts()[0]), 4)));
  rig.set_drain_deadline(lease, rig.clock().now() + std::chrono::seconds(60));
  const PromptRequest late = rig.request("t", lease, "late", rig.encode(prompts()[0]), 4);
  REQUIRE(rig.submit(late).error().code == Errc::Draining);
  REQUIRE(rig.submit(late).error().scope == FailureScope::Tenant);
  REQUIRE(rig.engine().take_drained().empty());
  while (rig.outcome("r").completions.empty()) REQUIRE(rig.step());
  REQUIRE(rig.engine().scheduler().tenancies().waiting_count() == 1);
  REQUIRE(rig.engine().take_drained().empty());
  rig.run();
  for (const char* id : {"r", "waits"}) {
    REQUIRE(rig.completion(id).reason == CompletionReason::MaxTokensReached);
  }
  REQUIRE(rig.outcome("waits").tokens == rig.outcome("r").tokens);
  REQUIRE(rig.engine().take_drained() == std::vector{lease});
  REQUIRE(rig.engine().take_drained().empty());
  rig.engine().repeat_drained();
  REQUIRE(rig.engine().take_drained() == std::vector{lease});
  REQUIRE(rig.submit(late).error().code == Errc::Draining);
}

TEST_CASE("typed ends: a token outside the vocabulary is refused at submit") {
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  for (const TokenId bad : {-1, static_cast<TokenId>(rig.config().n_vocab)}) {
    PromptRequest request = rig.request("t", lease, "r", {1, bad}, 4);
    REQUIRE(rig.submit(request).error().code == Errc::BadRequest);
    request.prompt = {1};
    request.emitted = {bad};
    REQUIRE(rig.submit(request).error().code == Errc::BadRequest);
  }
}

TEST_CASE("grants: an extent that arrives twice is added once") {
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  const auto& [id, object] = *rig.extents(lease).begin();
  const auto blocks = rig.engine().scheduler().tenancies().at(lease).pool.total_blocks();
  rig.engine().add_extent(
      lease, id, *LeasedMapping::map(object.fd(), object.size_bytes(), MapAccess::ReadWrite));
  REQUIRE(rig.engine().scheduler().tenancies().at(lease).pool.total_blocks() == blocks);
}

}  // namespace leasehold::testing

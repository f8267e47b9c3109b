#include "ipc/client/retry_decision.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using namespace leasehold::client;
using namespace std::chrono_literals;

namespace {

const RetryPolicy kPolicy{};

std::optional<Error> error_of_end(const std::string& reason) {
  return error_of({.reason = reason, .emitted_tokens = 3, .lease = LeaseId{1, 1}});
}

/// Decides after the worker ended the stream for this reason, which is an error.
RetryDecision after_end(const std::string& reason, const RetryContext& retry_context) {
  return after_completed(error_of_end(reason).value(), retry_context, kPolicy);
}

Errc code_of(const RetryDecision& decision) {
  REQUIRE_FALSE(decision);
  return decision.error().code;
}

Retry retry_of(const RetryDecision& decision) {
  REQUIRE(decision);
  return *decision;
}

}  // namespace

TEST_CASE("retry decision: a normal end is not an error") {
  const auto reason = GENERATE("EndOfSequence", "MaxTokensReached", "StopSequence", "Cancelled");

  CHECK_FALSE(error_of_end(reason));
}

TEST_CASE("retry decision: without rebind every other end is final and typed") {
  const auto [reason, code] =
      GENERATE(table<std::string, Errc>({{"Revoked", Errc::LeaseRevoked},
                                         {"LeaseFenced", Errc::LeaseFenced},
                                         {"DeadlineExceeded", Errc::TimedOut},
                                         {"EngineError", Errc::EngineDecodeFailed},
                                         {"QueueFull", Errc::QueueFull},
                                         {"Nonsense", Errc::MalformedMessage}}));

  CHECK(code_of(after_end(reason, {})) == code);
}

TEST_CASE("retry decision: a revoked lease is replaced without delay") {
  const auto reason = GENERATE("Revoked", "LeaseFenced");

  const auto again = retry_of(after_end(reason, {.rebind = true, .had_lease = true}));

  CHECK(again.delay == 0ns);
  CHECK(again.fresh_lease);
}

TEST_CASE("retry decision: a second revocation without progress in between backs off") {
  const auto again = retry_of(after_end("Revoked", {.rebind = true, .failures = 1, .setbacks = 1}));

  CHECK(again.delay == 100ms);
}

TEST_CASE("retry decision: a token alone does not make the next replacement immediate") {
  const auto again = retry_of(after_end("Revoked", {.rebind = true, .failures = 0, .setbacks = 3}));

  CHECK(again.delay == 400ms);
}

TEST_CASE("retry decision: a passed deadline is not retried") {
  CHECK(code_of(after_end("DeadlineExceeded", {.rebind = true})) == Errc::TimedOut);
}

TEST_CASE("retry decision: temporary errors are retried only with rebind") {
  const auto code = GENERATE(Errc::PoolExhausted, Errc::QuotaConcurrent, Errc::ConnectionLost,
                             Errc::RebindRateLimited, Errc::NoModelLoaded);
  const Error error{code, ""};

  CHECK(code_of(after_failure(error, Stage::Broker, {}, kPolicy)) == code);
  CHECK(retry_of(after_failure(error, Stage::Broker, {.rebind = true}, kPolicy)).delay == 50ms);
}

TEST_CASE("retry decision: memory that the broker reclaims is waited for without rebind too") {
  const Error reclaiming{.code = Errc::PoolExhausted, .retry_after_ms = 70};

  CHECK(retry_of(after_failure(reclaiming, Stage::Broker, {}, kPolicy)).delay == 70ms);
  CHECK(code_of(after_failure(reclaiming, Stage::Worker, {}, kPolicy)) == Errc::PoolExhausted);
}

TEST_CASE("retry decision: a worker that the broker awaits is asked for when the broker says") {
  const Error awaited{.code = Errc::NoModelLoaded, .retry_after_ms = 20};
  const RetryContext late{.rebind = true, .had_lease = true, .failures = 20, .setbacks = 9};
  CHECK(retry_of(after_failure(awaited, Stage::Broker, late, kPolicy)).delay == 20ms);
  const Error absent{.code = Errc::NoModelLoaded};
  CHECK(code_of(after_failure(absent, Stage::Broker, late, kPolicy)) == Errc::NoModelLoaded);
}

TEST_CASE("retry decision: memory that is reclaimed is asked for when the broker says, always") {
  const Error reclaiming{.code = Errc::PoolExhausted, .retry_after_ms = 70};
  const RetryContext late{.rebind = true, .had_lease = true, .failures = 5, .setbacks = 20};

  CHECK(retry_of(after_failure(reclaiming, Stage::Broker, late, kPolicy)).delay == 70ms);
}

TEST_CASE("retry decision: a retry waits at least as long as the broker says") {
  const RetryContext second{.rebind = true, .had_lease = true, .failures = 1, .setbacks = 1};
  const auto delay_after = [&](std::int64_t retry_after_ms) {
    const Error limited{.code = Errc::RebindRateLimited, .retry_after_ms = retry_after_ms};
    return retry_of(after_failure(limited, Stage::Broker, second, kPolicy)).delay;
  };

  CHECK(delay_after(7'000) == 7s);
  CHECK(delay_after(10) == 100ms);
}

TEST_CASE("retry decision: tokens beyond the limit are waited for under the same lease") {
  const Error limited{.code = Errc::QuotaTokens, .retry_after_ms = 7'000};
  const Retry again =
      retry_of(after_failure(limited, Stage::Worker, {.rebind = true, .had_lease = true}, kPolicy));

  CHECK(again.delay == 7s);
  CHECK_FALSE(again.fresh_lease);
  CHECK(code_of(after_failure(limited, Stage::Worker, {.had_lease = true}, kPolicy)) ==
        Errc::QuotaTokens);
}

TEST_CASE("retry decision: a lease whose worker ended before the grant is acquired again") {
  const Error error{Errc::LeaseRevoked, "worker_gone"};

  CHECK(code_of(after_failure(error, Stage::Broker, {}, kPolicy)) == Errc::LeaseRevoked);
  CHECK(retry_of(after_failure(error, Stage::Broker, {.rebind = true}, kPolicy)).fresh_lease);
}

TEST_CASE("retry decision: final errors are final with rebind too") {
  const auto code = GENERATE(Errc::UnknownTenant, Errc::BadRequest, Errc::PermissionDenied,
                             Errc::PromptTooLong, Errc::QuotaBlocks);

  CHECK(code_of(after_failure({code, ""}, Stage::Worker, {.rebind = true}, kPolicy)) == code);
}

TEST_CASE("retry decision: a broker that was never reached is not retried") {
  const auto code = GENERATE(Errc::ConnectionRefused, Errc::FileNotFound);

  CHECK(code_of(after_failure({code, ""}, Stage::Broker, {.rebind = true}, kPolicy)) == code);
  retry_of(after_failure({code, ""}, Stage::Broker, {.rebind = true, .had_lease = true}, kPolicy));
  retry_of(after_failure({code, ""}, Stage::Worker, {.rebind = true}, kPolicy));
}

TEST_CASE("retry decision: a temporary refusal keeps the lease, a lost worker does not") {
  const RetryContext retry_context{.rebind = true, .had_lease = true};

  CHECK_FALSE(
      retry_of(after_failure({Errc::QuotaConcurrent, ""}, Stage::Worker, retry_context, kPolicy))
          .fresh_lease);
  CHECK(retry_of(after_failure({Errc::ConnectionLost, ""}, Stage::Worker, retry_context, kPolicy))
            .fresh_lease);
  CHECK(retry_of(after_failure({Errc::QuotaConcurrent, ""}, Stage::Broker, retry_context, kPolicy))
            .fresh_lease);
}

TEST_CASE("retry decision: while the engine recovers the lease is kept and the session waits") {
  const auto code = GENERATE(Errc::EngineLeaseFenced, Errc::WeightsLoading, Errc::BrokerLost,
                             Errc::EngineDecodeFailed);
  const Error error{.code = code, .detail = "", .scope = FailureScope::Engine};
  const RetryContext retry_context{.rebind = true, .had_lease = true};

  for (const auto& decision : {after_failure(error, Stage::Worker, retry_context, kPolicy),
                               after_completed(error, retry_context, kPolicy)}) {
    const Retry again = retry_of(decision);
    CHECK_FALSE(again.fresh_lease);
    CHECK(again.delay == 50ms);
  }
}

TEST_CASE("retry decision: the same code in tenant scope costs the lease") {
  const Error error{.code = Errc::BrokerLost, .detail = "", .scope = FailureScope::Tenant};
  CHECK(retry_of(after_completed(error, {.rebind = true}, kPolicy)).fresh_lease);
}

TEST_CASE("retry decision: a text whose worker lost its weights goes to another worker") {
  const auto error = error_of({.reason = "MissingWeight", .scope = "engine"});
  REQUIRE(error);
  CHECK(error->scope == FailureScope::Engine);
  CHECK(error->detail.find("engine scope") != std::string::npos);

  CHECK(retry_of(after_completed(*error, {.rebind = true}, kPolicy)).fresh_lease);
  CHECK(retry_of(after_failure(*error, Stage::Worker, {.rebind = true}, kPolicy)).fresh_lease);
}

TEST_CASE("retry decision: missing weights are final without rebind, and when no worker has them") {
  const Error error{Errc::MissingWeight, "part blk.1"};
  CHECK(code_of(after_completed(error, {}, kPolicy)) == Errc::MissingWeight);
  CHECK(code_of(after_failure(error, Stage::Worker, {}, kPolicy)) == Errc::MissingWeight);
  CHECK(code_of(after_failure(error, Stage::Broker, {.rebind = true}, kPolicy)) ==
        Errc::MissingWeight);
}

TEST_CASE("retry decision: attempts are bounded and the last error is reported") {
  const Error error{Errc::PoolExhausted, "0 free"};

  retry_of(after_failure(error, Stage::Broker, {.rebind = true, .failures = 7}, kPolicy));
  const auto last = after_failure(error, Stage::Broker, {.rebind = true, .failures = 8}, kPolicy);

  CHECK(code_of(last) == Errc::PoolExhausted);
  CHECK(last.error().detail.starts_with("0 free"));
}

TEST_CASE("retry decision: a rebind waits for memory as long as refusals say, and as it has time") {
  const Error full{.code = GENERATE(Errc::PoolExhausted, Errc::QuotaBlocks),
                   .detail = "",
                   .retry_after_ms = 250};
  RetryContext context{.rebind = true, .had_lease = true, .setbacks = 40};
  context.waited = kPolicy.rebind_timeout - 1ms;
  const Retry again = retry_of(after_failure(full, Stage::Broker, context, kPolicy));
  CHECK(again.fresh_lease);
  CHECK(again.delay >= 250ms);
  context.waited = kPolicy.rebind_timeout;
  const auto last = after_failure(full, Stage::Broker, context, kPolicy);
  CHECK(code_of(last) == full.code);
  CHECK(last.error().detail.contains("given up after 600000 ms"));
  context.waited = 24h;
  CHECK(after_failure(full, Stage::Broker, context, {.rebind_timeout = Duration::max()}));
}

TEST_CASE("retry decision: blocks that other leases of the tenant hold are final before a lease") {
  const Error held{.code = Errc::QuotaBlocks, .detail = "", .retry_after_ms = 1'000};
  CHECK(code_of(after_failure(held, Stage::Broker, {.rebind = true}, kPolicy)) ==
        Errc::QuotaBlocks);
  const RetryContext rebinds{.rebind = true, .had_lease = true};
  CHECK_FALSE(retry_of(after_failure(held, Stage::Worker, rebinds, kPolicy)).fresh_lease);
  CHECK(after_completed(held, rebinds, kPolicy));
  const Error never{.code = Errc::QuotaBlocks, .detail = ""};
  CHECK(code_of(after_failure(never, Stage::Worker, rebinds, kPolicy)) == Errc::QuotaBlocks);
}

TEST_CASE("retry decision: a named worker may be unknown to a broker that restarted") {
  const Error unknown{Errc::UnknownWorker, "no worker w1 is attached"};
  const RetryContext rebinds{.rebind = true, .had_lease = true, .names_worker = true};
  const auto code_in = [&](RetryContext changed) {
    return code_of(after_failure(unknown, Stage::Broker, changed, kPolicy));
  };
  CHECK(retry_of(after_failure(unknown, Stage::Broker, rebinds, kPolicy)).fresh_lease);
  CHECK(code_in({.rebind = true, .names_worker = true}) == Errc::UnknownWorker);
  CHECK(code_in({.had_lease = true, .names_worker = true}) == Errc::UnknownWorker);
  // No worker serves the text.
  CHECK(code_in({.rebind = true, .had_lease = true}) == Errc::UnknownWorker);
  RetryContext often = rebinds;
  often.failures = kPolicy.max_attempts;
  CHECK(code_in(often) == Errc::UnknownWorker);
}

TEST_CASE("retry decision: the end of a request that waited says when to retry") {
  const auto error = error_of({.reason = "QuotaBlocks", .retry_after_ms = 1'000});
  REQUIRE(error);
  CHECK(error->retry_after_ms == 1'000);
}

TEST_CASE("retry decision: delays double up to a limit and do not overflow") {
  CHECK(backoff(kPolicy, 0) == 50ms);
  CHECK(backoff(kPolicy, 3) == 400ms);
  CHECK(backoff(kPolicy, 6) == 2s);
  CHECK(backoff(kPolicy, 1'000'000) == 2s);
}
TEST_CASE("retry decision: the end of a published text costs a rebinding client no lease") {
  const Error error{.code = Errc::LeaseRevoked, .detail = "", .scope = FailureScope::Shared};
  const RetryContext retry_context{.rebind = true, .had_lease = true};
  const RetryDecision decision = after_completed(error, retry_context, kPolicy);
  REQUIRE(decision);
  CHECK_FALSE(decision->fresh_lease);
  CHECK(decision->delay == Duration::zero());
  CHECK_FALSE(after_completed(error, {.had_lease = true}, kPolicy));
}

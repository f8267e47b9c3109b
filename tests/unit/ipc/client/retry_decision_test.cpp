#include "ipc/client/retry_decision.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using namespace leasehold::client;
using namespace std::chrono_literals;

namespace {

const RetryPolicy kPolicy{};
const RetryContext kRebinds{.rebind = true, .had_lease = true};

std::optional<Error> error_of_end(const std::string& reason) {
  return error_of({.reason = reason, .emitted_tokens = 3, .lease = LeaseId{1, 1}});
}

/// Decides after the worker ended the stream for this reason, which is an error.
RetryDecision after_end(const std::string& reason, const RetryContext& retry_context) {
  return after_completed(error_of_end(reason).value(), retry_context, kPolicy);
}

Error error_of_scope(Errc code, FailureScope scope) {
  return {.code = code, .detail = "", .scope = scope};
}

Error error_with_wait(Errc code, std::int64_t retry_after_ms) {
  return {.code = code, .detail = "", .retry_after_ms = retry_after_ms};
}

/// What reports an error: a call to the broker or the worker that fails, or the end of the stream.
enum class From { Broker, Worker, Stream };

RetryDecision decide(const Error& error, From from, const RetryContext& context) {
  if (from == From::Stream) return after_completed(error, context, kPolicy);
  return after_failure(error, from == From::Broker ? Stage::Broker : Stage::Worker, context,
                       kPolicy);
}

struct Retried {
  const char* what;
  Error error;
  From from;
  RetryContext context;
  Duration delay;
  bool fresh_lease = true;
};

struct Final {
  const char* what;
  Error error;
  From from;
  RetryContext context;
};

}  // namespace

TEST_CASE("retry decision: a normal end is not an error") {
  for (const char* reason : {"EndOfSequence", "MaxTokensReached", "StopSequence", "Cancelled"})
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
  const auto decision = after_end(reason, {});
  REQUIRE_FALSE(decision);
  CHECK(decision.error().code == code);
}

TEST_CASE("retry decision: a revoked lease is replaced without delay") {
  for (const char* reason : {"Revoked", "LeaseFenced"}) {
    const auto again = after_end(reason, kRebinds);
    REQUIRE(again);
    CHECK(again->delay == 0ns);
    CHECK(again->fresh_lease);
  }
}

TEST_CASE("retry decision: a revocation without progress since the last one backs off") {
  // A token resets the failures, but not the setbacks.
  CHECK(after_end("Revoked", {.rebind = true, .failures = 1, .setbacks = 1})->delay == 100ms);
  CHECK(after_end("Revoked", {.rebind = true, .failures = 0, .setbacks = 3})->delay == 400ms);
}

TEST_CASE("retry decision: temporary errors are retried") {
  const RetryContext second{.rebind = true, .had_lease = true, .failures = 1, .setbacks = 1};
  const RetryContext late{.rebind = true, .had_lease = true, .failures = 20, .setbacks = 20};
  const RetryContext named{.rebind = true, .had_lease = true, .names_worker = true};
  const Error lost{Errc::ConnectionLost, ""};
  const Error busy{Errc::QuotaConcurrent, ""};
  const Error reclaiming = error_with_wait(Errc::PoolExhausted, 70);
  const Error no_weights = error_of_scope(Errc::MissingWeight, FailureScope::Engine);
  std::vector<Retried> all{
      {"memory that the broker reclaims, without rebind", reclaiming, From::Broker, {}, 70ms},
      {"the same when it was refused often", reclaiming, From::Broker, late, 70ms},
      {"a host out of its cell, after a lease", {Errc::CellLost, ""}, From::Broker, second, 100ms},
      {"the same for long", error_with_wait(Errc::CellLost, 250), From::Broker, late, 250ms},
      {"a worker that the broker awaits", error_with_wait(Errc::NoModelLoaded, 20), From::Broker,
       late, 20ms},
      {"a wait that the broker asks for", error_with_wait(Errc::RebindRateLimited, 7'000),
       From::Broker, second, 7s},
      {"a wait shorter than the back-off", error_with_wait(Errc::RebindRateLimited, 10),
       From::Broker, second, 100ms},
      {"tokens beyond the limit", error_with_wait(Errc::QuotaTokens, 7'000), From::Worker, kRebinds,
       7s, false},
      {"a lease whose worker ended before the grant",
       {Errc::LeaseRevoked, "worker_gone"},
       From::Broker,
       {.rebind = true},
       0ms},
      {"a broker that was reached before", {Errc::FileNotFound, ""}, From::Broker, kRebinds, 50ms},
      {"a worker that is not reached",
       {Errc::ConnectionRefused, ""},
       From::Worker,
       {.rebind = true},
       50ms},
      {"a refusal of the worker, which keeps the lease", busy, From::Worker, kRebinds, 50ms, false},
      {"a refusal of the broker", busy, From::Broker, kRebinds, 50ms},
      {"a lost worker", lost, From::Worker, kRebinds, 50ms},
      {"a code of the engine in tenant scope",
       error_of_scope(Errc::BrokerLost, FailureScope::Tenant),
       From::Stream,
       {.rebind = true},
       50ms},
      {"a stream whose worker lost its weights", no_weights, From::Stream, {.rebind = true}, 50ms},
      {"a worker that lost its weights", no_weights, From::Worker, {.rebind = true}, 50ms},
      {"the last attempt",
       {Errc::PoolExhausted, ""},
       From::Broker,
       {.rebind = true, .failures = 7},
       50ms},
      {"blocks that other leases of the tenant hold", error_with_wait(Errc::QuotaBlocks, 1'000),
       From::Worker, kRebinds, 1s, false},
      {"the same after the request waited", error_with_wait(Errc::QuotaBlocks, 1'000), From::Stream,
       kRebinds, 1s},
      {"a named worker that a restarted broker does not know",
       {Errc::UnknownWorker, ""},
       From::Broker,
       named,
       50ms},
      {"the end of a published text", error_of_scope(Errc::LeaseRevoked, FailureScope::Shared),
       From::Stream, kRebinds, 0ms, false},
      {"the end of an adapter's lease", error_of_scope(Errc::LeaseRevoked, FailureScope::Adapter),
       From::Stream, kRebinds, 0ms, false},
      {"adapters beyond the limit, which keep the lease",
       {Errc::QuotaAdapters, ""},
       From::Worker,
       kRebinds,
       50ms,
       false}};
  for (const Errc code : {Errc::PoolExhausted, Errc::QuotaConcurrent, Errc::ConnectionLost,
                          Errc::RebindRateLimited, Errc::NoModelLoaded})
    all.push_back({"temporary", {code, ""}, From::Broker, {.rebind = true}, 50ms});
  for (const Errc code : {Errc::EngineLeaseFenced, Errc::WeightsLoading, Errc::BrokerLost,
                          Errc::EngineDecodeFailed}) {
    const Error error = error_of_scope(code, FailureScope::Engine);
    for (const From from : {From::Worker, From::Stream})
      all.push_back({"the engine recovers", error, from, kRebinds, 50ms, false});
  }
  for (const Retried& each : all) {
    CAPTURE(each.what, name(each.error.code));
    const auto decision = decide(each.error, each.from, each.context);
    REQUIRE(decision);
    CHECK(decision->delay == each.delay);
    CHECK(decision->fresh_lease == each.fresh_lease);
  }
}

TEST_CASE("retry decision: other errors are final") {
  const RetryContext late{.rebind = true, .had_lease = true, .failures = 20, .setbacks = 9};
  const RetryContext rebinds{.rebind = true};
  const Error unknown{Errc::UnknownWorker, ""};
  const Error no_weights{Errc::MissingWeight, "part blk.1"};
  std::vector<Final> all{
      {"a passed deadline", {Errc::TimedOut, ""}, From::Stream, rebinds},
      {"memory that the worker lacks", error_with_wait(Errc::PoolExhausted, 70), From::Worker, {}},
      {"a worker that the broker does not await", {Errc::NoModelLoaded, ""}, From::Broker, late},
      {"tokens beyond the limit, without rebind",
       error_with_wait(Errc::QuotaTokens, 7'000),
       From::Worker,
       {.had_lease = true}},
      {"a worker that ended before the grant, without rebind",
       {Errc::LeaseRevoked, ""},
       From::Broker,
       {}},
      {"missing weights, without rebind", no_weights, From::Stream, {}},
      {"missing weights, without rebind", no_weights, From::Worker, {}},
      {"weights that no worker has", no_weights, From::Broker, rebinds},
      {"too many attempts",
       {Errc::PoolExhausted, "0 free"},
       From::Broker,
       {.rebind = true, .failures = 8}},
      {"blocks of other leases, before the first lease", error_with_wait(Errc::QuotaBlocks, 1'000),
       From::Broker, rebinds},
      {"a host out of its cell, before the first lease",
       {Errc::CellLost, ""},
       From::Broker,
       rebinds},
      {"blocks beyond the quota", {Errc::QuotaBlocks, ""}, From::Worker, kRebinds},
      {"a named worker, before the first lease",
       unknown,
       From::Broker,
       {.rebind = true, .names_worker = true}},
      {"a named worker, without rebind",
       unknown,
       From::Broker,
       {.had_lease = true, .names_worker = true}},
      {"a text that no worker serves", unknown, From::Broker, kRebinds},
      {"a named worker, after too many attempts",
       unknown,
       From::Broker,
       {.rebind = true, .had_lease = true, .names_worker = true, .failures = kPolicy.max_attempts}},
      {"the end of a published text, without rebind",
       error_of_scope(Errc::LeaseRevoked, FailureScope::Shared),
       From::Stream,
       {.had_lease = true}},
      {"the end of an adapter's lease, twice without a token between",
       error_of_scope(Errc::LeaseRevoked, FailureScope::Adapter),
       From::Stream,
       {.rebind = true, .had_lease = true, .failures = 1}},
      {"an adapter whose file is gone", error_of_scope(Errc::MissingWeight, FailureScope::Adapter),
       From::Worker, kRebinds},
      {"an adapter whose file has changed",
       error_of_scope(Errc::FileCorrupt, FailureScope::Adapter), From::Worker, kRebinds},
      {"an adapter that was removed", {Errc::UnknownAdapter, ""}, From::Worker, kRebinds}};
  for (const Errc code : {Errc::PoolExhausted, Errc::QuotaConcurrent, Errc::ConnectionLost,
                          Errc::RebindRateLimited, Errc::NoModelLoaded})
    all.push_back({"temporary, without rebind", {code, ""}, From::Broker, {}});
  for (const Errc code : {Errc::UnknownTenant, Errc::BadRequest, Errc::PermissionDenied,
                          Errc::PromptTooLong, Errc::QuotaBlocks})
    all.push_back({"not temporary", {code, ""}, From::Worker, rebinds});
  for (const Errc code : {Errc::ConnectionRefused, Errc::FileNotFound})
    all.push_back({"a broker that was never reached", {code, ""}, From::Broker, rebinds});
  for (const Final& each : all) {
    CAPTURE(each.what, name(each.error.code));
    const auto decision = decide(each.error, each.from, each.context);
    REQUIRE_FALSE(decision);
    CHECK(decision.error().code == each.error.code);
    CHECK(decision.error().detail.starts_with(each.error.detail));
  }
}

TEST_CASE("retry decision: an end keeps the scope and the wait of its error") {
  const auto lost = error_of({.reason = "MissingWeight", .scope = "engine"});
  REQUIRE(lost);
  CHECK(lost->scope == FailureScope::Engine);
  CHECK(lost->detail.contains("engine scope"));
  const auto waited = error_of({.reason = "QuotaBlocks", .retry_after_ms = 1'000});
  REQUIRE(waited);
  CHECK(waited->retry_after_ms == 1'000);
}

TEST_CASE("retry decision: a rebind waits for memory as long as refusals say, and as it has time") {
  const Error full = error_with_wait(GENERATE(Errc::PoolExhausted, Errc::QuotaBlocks), 250);
  RetryContext context{.rebind = true, .had_lease = true, .setbacks = 40};
  context.waited = kPolicy.rebind_timeout - 1ms;
  const auto again = after_failure(full, Stage::Broker, context, kPolicy);
  REQUIRE(again);
  CHECK(again->fresh_lease);
  CHECK(again->delay >= 250ms);
  context.waited = kPolicy.rebind_timeout;
  const auto last = after_failure(full, Stage::Broker, context, kPolicy);
  REQUIRE_FALSE(last);
  CHECK(last.error().code == full.code);
  CHECK(last.error().detail.contains("given up after 600000 ms"));
  context.waited = 24h;
  CHECK(after_failure(full, Stage::Broker, context, {.rebind_timeout = Duration::max()}));
}

TEST_CASE("retry decision: delays double up to a limit and do not overflow") {
  CHECK(backoff(kPolicy, 0) == 50ms);
  CHECK(backoff(kPolicy, 3) == 400ms);
  CHECK(backoff(kPolicy, 6) == 2s);
  CHECK(backoff(kPolicy, 1'000'000) == 2s);
}

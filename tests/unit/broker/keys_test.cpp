// API keys: hashes that let any user act for a tenant, and end its leases with them.
#include <catch2/catch.hpp>

#include "ipc/control/tokens/api_key.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kStranger = 4711;  // a user that no policy names

struct KeyWorld : World {
  KeyWorld() {
    attach_worker("w0", kWorkerSocket);
    call(kOperator, wire::TenantAdmit{.tenant = {"acme"}, .uid = 7, .request_id = {"t-1"}});
    admit_tenant("other");
    create(key);
  }
  CallId create(const std::string& text, const std::string& tenant = "acme") {
    return call(kOperator, wire::KeyCreate{.tenant = {tenant}, .hash = hash_of_api_key(text)});
  }
  CallId acquire_with(std::optional<std::string> shown, const std::string& tenant = "acme") {
    return call(kHolder, wire::LeaseAcquire{.tenant = {tenant}, .blocks = 8, .api_key = shown},
                kStranger);
  }
  CallId create_with(wire::KeyCreate create) {
    create.tenant = {"acme"};
    create.hash = hash_of_api_key(mint_api_key());
    return call(kOperator, create);
  }
  CallId update(wire::KeyUpdate update) {
    update.key = id;
    return call(kOperator, update);
  }
  void limit_tenant(const wire::RateLimits& rates) {
    call(kOperator, wire::TenantAdmit{.tenant = {"acme"}, .max_concurrent = 8, .rates = rates});
  }
  const journal::ApiKeyRow& row() const { return *state.api_keys.find(id); }
  /// The quota of acme that the worker heard last.
  wire::TenantQuota quota() const {
    wire::TenantQuota last;
    for (const auto& sent : performed<effect::SendQuota>())
      if (sent.quota.tenant == TenantId{"acme"}) last = sent.quota;
    return last;
  }
  /// The worker reports a request of 20 prompt tokens, 5 of them cached, and 10 generated ones.
  void report(std::uint64_t number, LeaseId lease) {
    call(kWorkerSocket, wire::UsageReport{.records = {{.number = number,
                                                       .tenant = {"acme"},
                                                       .request = {"r"},
                                                       .lease = lease,
                                                       .prompt_tokens = 20,
                                                       .cached_tokens = 5,
                                                       .generated_tokens = 10,
                                                       .reason = "EndOfSequence"}}});
  }
  LeaseId leased() { return answer<wire::LeaseAcquired>(acquire_with(key)).lease; }
  CallId revoke_key() { return call(kOperator, wire::KeyRevoke{.key = id}); }

  std::string key = mint_api_key();
  ApiKeyId id = api_key_id(hash_of_api_key(key));
};

}  // namespace

TEST_CASE("keys: a key lets any user acquire for its tenant, and only for it") {
  KeyWorld world;
  CHECK(world.refusal(world.acquire_with(std::nullopt)) == Errc::UnknownTenant);
  CHECK(world.record(world.leased()).api_key == world.id);
  CHECK(world.refusal(world.acquire_with(world.key, "other")) == Errc::BadToken);
  CHECK(world.refusal(world.acquire_with(world.key + "0")) == Errc::BadToken);
  CHECK(world.refusal(world.acquire_with(mint_api_key())) == Errc::BadToken);
}

TEST_CASE("keys: the hash itself opens nothing") {
  KeyWorld world;
  CHECK(world.refusal(world.acquire_with(hash_of_api_key(world.key))) == Errc::BadToken);
}

TEST_CASE("keys: revoking a key ends its leases and no others, and refuses the key") {
  KeyWorld world;
  const LeaseId with_key = world.leased();
  const LeaseId without = world.acquired("other");
  CHECK(world.answer<wire::LeasesTouched>(world.revoke_key()).leases == std::vector{with_key});
  CHECK_FALSE(world.record(with_key).is(LeaseState::Live));
  CHECK(reason_of(world.record(with_key).lease) == RevokeReason::PolicyChanged);
  CHECK(world.record(without).is(LeaseState::Live));
  CHECK(world.refusal(world.acquire_with(world.key)) == Errc::BadToken);
  CHECK(world.refusal(world.revoke_key()) == Errc::BadRequest);
}

TEST_CASE("requests: each request that an operator has cancelled is an operator action") {
  World world;
  world.post(RequestsCancelled{
      .uid = 7, .worker = "w1", .requests = {"acme/a", "acme/" + std::string(300, 'x')}});
  const auto actions = world.recorded<events::OperatorAction>();
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].action == "cancel");
  CHECK(actions[0].object == "request:acme/a@w1");
  CHECK(actions[0].uid == 7);
  CHECK(actions[0].done);
  CHECK(actions[1].object.size() == 200);
}

TEST_CASE("keys: a lease that replaces one of a key ends with the key, too") {
  KeyWorld world;
  const LeaseId old = world.leased();
  const LeaseId fresh = world
                            .answer<wire::LeaseAcquired>(
                                world.call(kHolder, wire::LeaseReplace{.lease = old}, kStranger))
                            .lease;
  world.revoke_key();
  CHECK_FALSE(world.record(fresh).is(LeaseState::Live));
}

TEST_CASE("keys: keys and the leases that depend on them survive a broker restart") {
  KeyWorld before;
  const LeaseId lease = before.leased();
  World after(before, {});
  CHECK(after.record(lease).api_key == before.id);
  CHECK(after.state.api_keys.verify(before.key, 0).value()->tenant == TenantId{"acme"});
  const CallId revoke = after.call(kOperator, wire::KeyRevoke{.key = before.id});
  CHECK(after.answer<wire::LeasesTouched>(revoke).leases == std::vector{lease});
  CHECK(after.journal.api_keys.empty());
}

TEST_CASE("keys: a key that is not on disk is not created, and its row is not written later") {
  KeyWorld world;
  const std::string lost = mint_api_key();
  world.disk_full = true;
  CHECK(world.refusal(world.create(lost)) == Errc::DiskFull);
  CHECK(world.state.api_keys.all().size() == 1);
  const auto action = world.recorded<events::OperatorAction>().back();
  CHECK(action.action == "key_create");
  CHECK(action.object == "key:" + api_key_id(hash_of_api_key(lost)).value);
  CHECK(action.reason == "not on disk");
  CHECK_FALSE(action.done);

  world.disk_full = false;
  CHECK(world.refusal(world.acquire_with(lost)) == Errc::BadToken);
  world.answer<wire::Empty>(world.create(mint_api_key()));
  CHECK(world.journal.api_keys.size() == 2);
  CHECK_FALSE(world.journal.api_keys.contains(api_key_id(hash_of_api_key(lost))));
  world.answer<wire::Empty>(world.create(lost));
}

TEST_CASE("keys: the leases of a key that is not on disk end with it") {
  KeyWorld world;
  const LeaseId of_key = world.leased();
  const LeaseId other = world.acquired("other");
  const CallId create{777};
  world.state.api_keys.await_write(create, {.id = world.id, .creator_uid = 5});

  world.post(JournalWritten{.call = create, .refused = Error{Errc::DiskFull, "full"}});

  CHECK(reason_of(world.record(of_key).lease) == RevokeReason::PolicyChanged);
  CHECK(world.record(other).is(LeaseState::Live));
  CHECK(world.recorded<events::OperatorAction>().back().uid == 5);
}

TEST_CASE("keys: the revocation of a key that does not exist is a wrong value") {
  KeyWorld world;
  const CallId call = world.call(kOperator, wire::KeyRevoke{.key = {"123"}});
  CHECK(world.refusal(call) == Errc::BadRequest);
  CHECK(world.answers.at(call).error().detail == "no key 123; `brokerctl keys` lists all");
}

TEST_CASE("keys: a revocation that is not on disk takes effect, answers DiskFull, is repeated") {
  KeyWorld world;
  world.disk_full = true;
  CHECK(world.refusal(world.revoke_key()) == Errc::DiskFull);
  CHECK(world.refusal(world.acquire_with(world.key)) == Errc::BadToken);

  world.disk_full = false;
  CHECK(world.answer<wire::LeasesTouched>(world.revoke_key()).leases.empty());
  CHECK(world.refusal(world.revoke_key()) == Errc::BadRequest);
}

TEST_CASE("keys: a removed tenant's keys are forgotten") {
  KeyWorld world;
  world.call(kOperator, wire::TenantRemove{.tenant = {"acme"}, .revoke = true});
  CHECK(world.state.api_keys.all().empty());
  CHECK(world.journal.api_keys.empty());
}

TEST_CASE("keys: a tenant that is admitted again has another time of admission") {
  KeyWorld world;
  const auto admitted = [](const World& of) {
    return of.state.tenants.find({"acme"})->admitted_unix_ms;
  };
  const std::int64_t first = admitted(world);
  CHECK(first == world.state.wall.unix_ms(world.clock.now()));
  world.clock.advance(std::chrono::seconds(1));
  world.call(kOperator, wire::TenantAdmit{.tenant = {"acme"}, .weight = 2});
  CHECK(admitted(world) == first);
  world.call(kOperator, wire::TenantRemove{.tenant = {"acme"}, .revoke = true});
  world.call(kOperator, wire::TenantAdmit{.tenant = {"acme"}});
  CHECK(admitted(world) == first + 1'000);
  const World next(world, {});  // after a broker restart
  CHECK(admitted(next) == first + 1'000);
}

TEST_CASE("keys: a tenant has at most 64, and an unknown tenant none") {
  KeyWorld world;
  for (std::size_t i = 1; i < ApiKeys::kMaxPerTenant; ++i)
    world.answer<wire::Empty>(world.create(mint_api_key()));
  CHECK(world.refusal(world.create(mint_api_key())) == Errc::QuotaConcurrent);
  CHECK(world.refusal(world.create(mint_api_key(), "unknown")) == Errc::UnknownTenant);
  CHECK(world.refusal(world.create(world.key, "other")) == Errc::BadRequest);
}

TEST_CASE("keys: a key is recognised by its whole hash") {
  ApiKeys keys;
  const std::string hash = hash_of_api_key("shown");
  keys.add({.id = api_key_id(hash), .tenant = {"acme"}, .hash = hash_of_api_key("kept")}, {})
      .value();
  CHECK(keys.verify("shown", 0).error().code == Errc::BadToken);
}

// ------------------------------------------------------------------------------------------ expiry

TEST_CASE("keys: an expired key ends its leases at that moment, and says when it expired") {
  KeyWorld world;
  const std::int64_t begin_ms = world.state.wall.unix_ms(world.clock.now());
  world.update({.name = "ci", .expires_unix_ms = begin_ms + 5'000});
  const LeaseId lease = world.leased();
  const LeaseId other = world.acquired("other");
  world.advance(4'999ms);
  CHECK(world.record(lease).is(LeaseState::Live));
  world.advance(1ms);
  CHECK(reason_of(world.record(lease).lease) == RevokeReason::PolicyChanged);
  const auto expired = world.recorded<events::KeyExpired>();
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].key == world.id.value);
  CHECK(expired[0].tenant == "acme");
  CHECK(expired[0].name == "ci");
  CHECK(world.record(other).is(LeaseState::Live));
  const Error refused = world.error_of(world.acquire_with(world.key));
  CHECK(refused.code == Errc::BadToken);
  CHECK(refused.detail.contains(world.id.value + " (ci) expired at 1970-01-01T00:00:06Z"));
  CHECK(next_deadline(world.state).value() > world.clock.now());
}

TEST_CASE("keys: a key is valid by what the clock shows, whichever way it was set") {
  KeyWorld world;
  const std::int64_t begin_ms = world.state.wall.unix_ms(world.clock.now());
  world.update({.expires_unix_ms = begin_ms + 3'600'000});
  const LeaseId lease = world.leased();
  world.post(ClockSet{.offset = 2h});
  CHECK_FALSE(world.record(lease).is(LeaseState::Live));
  CHECK(world.refusal(world.acquire_with(world.key)) == Errc::BadToken);

  world.post(ClockSet{.offset = 0h});
  const LeaseId again = world.leased();
  world.post(ClockSet{.offset = 3599s});
  CHECK(world.record(again).is(LeaseState::Live));
  world.advance(1s);
  CHECK_FALSE(world.record(again).is(LeaseState::Live));
}

TEST_CASE("keys: a later expiry makes an expired key valid, and so does none") {
  KeyWorld world;
  const std::int64_t begin_ms = world.state.wall.unix_ms(world.clock.now());
  world.update({.name = "ci", .expires_unix_ms = begin_ms + 1'000});
  world.advance(1s);
  CHECK(world.refusal(world.acquire_with(world.key)) == Errc::BadToken);
  const auto view =
      world.answer<wire::KeyView>(world.update({.expires_unix_ms = begin_ms + 9'000}));
  CHECK_FALSE(view.expired);
  CHECK(view.name == "ci");
  const LeaseId lease = world.leased();
  CHECK_FALSE(world.answer<wire::KeyView>(world.update({.never_expires = true})).expires_unix_ms);
  world.advance(9s);
  CHECK(world.record(lease).is(LeaseState::Live));
}

TEST_CASE("keys: name, times, limits and the use of the day survive a broker restart") {
  KeyWorld before;
  before.update({.name = "ci",
                 .expires_unix_ms = 2'000'000,
                 .limits = {.max_concurrent = 1, .rates = {.tokens_per_day = 100}}});
  before.advance(61s);
  before.report(1, before.leased());
  World after(before, {});
  const journal::ApiKeyRow& key = *after.state.api_keys.find(before.id);
  CHECK(key.name == "ci");
  CHECK(key.created_unix_ms == 1'000);
  CHECK(key.last_used_unix_ms == 60'000);
  CHECK(key.limits.max_concurrent == 1u);
  CHECK(key.use.tokens_on(0) == 25);
  CHECK(after.state.tenants.find({"acme"})->use.tokens_on(0) == 25);
  after.clock.advance(after.state.wall.at(2'000'000) - after.clock.now());
  CHECK(next_deadline(after.state).value() <= after.clock.now());
  after.post(Tick{});
  const CallId late = after.call(
      kHolder, wire::LeaseAcquire{.tenant = {"acme"}, .blocks = 8, .api_key = before.key},
      kStranger);
  CHECK(after.refusal(late) == Errc::BadToken);
}

// ------------------------------------------------------------------------------------------ limits

TEST_CASE("keys: a past expiry and a limit above the tenant's are wrong values that are named") {
  KeyWorld world;
  world.limit_tenant(
      {.tokens_per_minute = 600, .requests_per_minute = 60, .tokens_per_day = 1'000});
  const auto refused = [&](const wire::KeyCreate& create) {
    const Error error = world.error_of(world.create_with(create));
    CHECK(error.code == Errc::BadRequest);
    return error.detail;
  };
  CHECK(refused({.expires_unix_ms = 1'000}).contains("1000 (1970-01-01T00:00:01Z), which has"));
  CHECK(refused({.limits = {.max_concurrent = 9}}).contains("max_concurrent is 9, but"));
  CHECK(refused({.limits = {.rates = {.tokens_per_minute = 601}}}).contains("acme has 600"));
  CHECK(refused({.limits = {.rates = {.requests_per_minute = 61}}}).contains("acme has 60"));
  CHECK(refused({.limits = {.rates = {.tokens_per_day = 1'001}}}).contains("acme has 1000"));
  CHECK(world.refusal(world.update({.limits = {.max_concurrent = 9}})) == Errc::BadRequest);
  CHECK(world.refusal(world.call(kOperator, wire::KeyUpdate{.key = {"123"}})) == Errc::BadRequest);
  CHECK_FALSE(world.row().limits.max_concurrent);
}

TEST_CASE("keys: workers get the limits of a key with the quota of its tenant, until it ends") {
  KeyWorld world;
  world.limit_tenant({.requests_per_minute = 60});
  world.leased();
  CHECK(world.quota().rates.requests_per_minute == 60u);
  CHECK(world.quota().rates.request_credit == 60u);
  CHECK(world.quota().keys.empty());
  world.update({.limits = {.max_concurrent = 2, .rates = {.requests_per_minute = 6}}});
  REQUIRE(world.quota().keys.size() == 1);
  const wire::KeyQuota key = world.quota().keys.front();
  CHECK(key.key == world.id);
  CHECK(key.max_concurrent == 2u);
  CHECK(key.rates.requests_per_minute == 6u);
  CHECK(key.rates.request_credit == 6u);  // a key that was not limited has a whole minute's
  CHECK_FALSE(key.rates.tokens_per_minute);
  world.revoke_key();
  const auto other = mint_api_key();
  world.create(other);
  world.acquire_with(other);
  CHECK(world.quota().keys.empty());
}

TEST_CASE("keys: a limit is removed, and the others stay") {
  KeyWorld world;
  world.limit_tenant({});
  world.update(
      {.limits = {
           .max_concurrent = 2,
           .rates = {.tokens_per_minute = 5, .requests_per_minute = 6, .tokens_per_day = 7}}});
  const auto update = [&](std::vector<std::string> names) {
    return world.answer<wire::KeyView>(world.update({.removes = std::move(names)})).limits;
  };
  const wire::KeyLimits left = update({"max_concurrent", "tokens_per_day"});
  CHECK_FALSE(left.max_concurrent);
  CHECK(left.rates == wire::RateLimits{.tokens_per_minute = 5, .requests_per_minute = 6});
  CHECK(update({"tokens_per_minute", "requests_per_minute"}).rates == wire::RateLimits{});
  CHECK(world.journal.api_keys.at(world.id).limits.rates == wire::RateLimits{});
}

TEST_CASE("keys: what a tenant and a key used today is counted once, and is new at 00:00 UTC") {
  KeyWorld world;
  world.limit_tenant({.tokens_per_day = 100});
  world.update({.limits = {.rates = {.tokens_per_day = 30}}});
  const LeaseId lease = world.leased();
  CHECK(world.quota().rates.tokens_today == 100u);
  CHECK(world.quota().keys.front().rates.tokens_today == 30u);
  CHECK(world.quota().rates.day_end_boottime_ns == TimePoint{86'400'000'000'000}.boottime_ns);
  world.report(1, lease);
  world.report(1, lease);
  CHECK(world.quota().rates.tokens_today == 75u);
  CHECK(world.quota().keys.front().rates.tokens_today == 5u);
  world.report(2, lease);
  CHECK(world.quota().keys.front().rates.tokens_today == 0u);

  world.post(ClockSet{.offset = 24h});
  CHECK(world.quota().rates.tokens_today == 100u);
  CHECK(world.quota().keys.front().rates.tokens_today == 30u);
}

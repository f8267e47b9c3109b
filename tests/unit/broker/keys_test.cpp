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
  CHECK(after.state.api_keys.verify(before.key).value()->tenant == TenantId{"acme"});
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
  keys.add({.id = api_key_id(hash), .tenant = {"acme"}, .hash = hash_of_api_key("kept")}).value();
  CHECK(keys.verify("shown").error().code == Errc::BadToken);
}

// Policies that change while leases are live, and their division among workers.
#include <catch2/catch.hpp>
#include <numeric>

#include "broker/server/views/tenant_views.hpp"
#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

constexpr ConnectionId kDividedSocket{11};

struct QuotaWorld : ServingWorld {
  void limit(std::uint32_t max_concurrent, std::uint32_t max_blocks = 1024) {
    call(kOperator, wire::TenantAdmit{.tenant = {"a"},
                                      .max_concurrent = max_concurrent,
                                      .max_blocks = max_blocks,
                                      .ttl_ms = 60'000});
  }
  void limit_tokens(std::uint32_t tokens_per_minute) {
    call(kOperator,
         wire::TenantAdmit{.tenant = {"a"}, .rates = {.tokens_per_minute = tokens_per_minute}});
  }
  LeaseId acquire_on(const std::string& worker_name) {
    const CallId acquire =
        call(kHolder, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .worker = worker_name});
    return answer<wire::LeaseAcquired>(acquire).lease;
  }
  /// The quota that the worker heard last. Revision 0: none.
  wire::TenantQuota quota_of(AttachmentId id) const {
    wire::TenantQuota last;
    for (const auto& sent : performed<effect::SendQuota>()) {
      if (sent.worker == id) last = sent.quota;
    }
    return last;
  }
  /// Of the quotas that were sent.
  std::vector<std::uint32_t> credits() const {
    std::vector<std::uint32_t> all;
    for (const auto& sent : performed<effect::SendQuota>())
      all.push_back(sent.quota.rates.token_credit);
    return all;
  }
  void report(AttachmentId id, wire::TenantUsage usage) {
    usage.tenant = {"a"};
    usage.revision = quota_of(id).revision;
    post(UsageReported{state.workers.find(id)->connection, usage});
  }
};

/// A second worker; the tenant holds a lease on each.
struct DividedWorld : QuotaWorld {
  explicit DividedWorld(std::uint32_t max_concurrent) {
    limit(max_concurrent);
    first_lease = acquire_on("w0");
    second_lease = acquire_on("w1");
  }
  AttachmentId second = attach_worker("w1", kDividedSocket);
  LeaseId first_lease;
  LeaseId second_lease;
};

}  // namespace

TEST_CASE("policy: a worker hears the quota before the grant, and every change at once") {
  QuotaWorld world;
  world.limit(4);
  world.forget_effects();
  world.acquired("a");
  const auto kind = [](const Effect& each) -> char {
    if (std::holds_alternative<effect::SendQuota>(each)) return 'q';
    return std::holds_alternative<effect::SendGrant>(each) ? 'g' : ' ';
  };
  std::string order;
  for (const Effect& each : world.effects) order += kind(each);
  std::erase(order, ' ');
  CHECK(order == "qg");
  CHECK(world.quota_of(world.worker).max_concurrent == 4);
  CHECK_FALSE(world.quota_of(world.worker).divided);

  world.limit(1, 8);
  CHECK(world.quota_of(world.worker).max_concurrent == 1);
  CHECK(world.quota_of(world.worker).weight == 1);

  world.call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .weight = 7});
  CHECK(world.quota_of(world.worker).weight == 7);
  CHECK(world.quota_of(world.worker).max_blocks == 8);
  world.limit(6);
  CHECK(world.quota_of(world.worker).max_concurrent == 6);
}

TEST_CASE("policy: a worker hears what one request can ever hold, of the quota and the memory") {
  QuotaWorld world;  // 16 extents of 8 blocks
  world.limit(4, 40);
  world.acquired("a");
  CHECK(world.quota_of(world.worker).request_blocks == 40u);
  world.limit(4, 1'000);
  CHECK(world.quota_of(world.worker).request_blocks == 128u);
  world.call(kOperator,
             wire::TenantAdmit{
                 .tenant = {"other"}, .reserved_blocks = 32, .tier = wire::Tier::Guaranteed});
  CHECK(world.quota_of(world.worker).request_blocks == 96u);
  world.call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .tier = wire::Tier::Scavenger});
  CHECK(world.quota_of(world.worker).request_blocks == 128u);
}

TEST_CASE("policy: what one request can ever hold and use is not divided among workers") {
  DividedWorld world(4);
  world.limit(4, 40);
  world.limit_tokens(600);
  CHECK(world.quota_of(world.worker).max_blocks == 32);
  CHECK(world.quota_of(world.worker).request_blocks == 40u);
  CHECK(world.quota_of(world.second).rates.request_tokens == 600u);
  CHECK(*world.quota_of(world.second).rates.tokens_per_minute < 600u);
}

TEST_CASE("policy: blocks that the tenant's other leases hold may be asked for again later") {
  QuotaWorld world;
  world.limit(4, 16);
  world.acquired("a");
  const Error& later = world.error_of(world.acquire("a", 16));
  CHECK(later.code == Errc::QuotaBlocks);
  CHECK(later.retry_after_ms > 0);
  const Error& never = world.error_of(world.acquire("a", 17));
  CHECK(never.code == Errc::QuotaBlocks);
  CHECK(never.retry_after_ms == 0);
}

TEST_CASE("policy: a quota is withdrawn when the tenant's last live lease on the worker ends") {
  QuotaWorld world;
  world.limit(4);
  const LeaseId first = world.acquired("a");
  const LeaseId second = world.acquired("a");
  world.revoke(first);
  CHECK_FALSE(world.quota_of(world.worker).is_withdrawn());
  const std::uint64_t revision = world.quota_of(world.worker).revision;
  const bool removed = GENERATE(false, true);
  if (removed) {
    world.call(kOperator, wire::TenantRemove{.tenant = {"a"}, .revoke = true});
    world.limit(4);
  } else {
    world.revoke(second);
  }
  CHECK(world.quota_of(world.worker).tenant == TenantId{"a"});
  CHECK(world.quota_of(world.worker).is_withdrawn());
  CHECK(world.quota_of(world.worker).revision > revision);

  world.acquired("a");
  CHECK(world.quota_of(world.worker).max_concurrent == 4);
}

TEST_CASE("policy: a worker that resumes hears the quota again") {
  QuotaWorld world;
  world.limit(4);
  const LeaseId lease = world.acquired("a");
  world.restart();
  world.forget_effects();
  world.limit(2);
  CHECK(world.performed<effect::SendQuota>().empty());  // it cannot hear yet

  world.call(kReturnSocket, wire::WorkerAttach{.worker = "w0", .resume = world.worker});
  world.call(kReturnSocket,
             wire::LeaseRedeliver{.lease = lease, .extents = world.record(lease).extents});
  world.call(kReturnSocket,
             wire::WorkerReady{.address = "/run/w0", .kv_block_size_bytes = kTestBlockBytes});
  CHECK(world.quota_of(world.worker).max_concurrent == 2);
}

TEST_CASE("policy: a lowered max_blocks lets what runs grow, and admits nothing new") {
  QuotaWorld world;
  world.limit(4, 64);
  const LeaseId lease = world.acquired("a");
  world.limit(4, 8);

  const CallId by_worker = world.call(kWorkerSocket, wire::LeaseGrow{.lease = lease});
  CHECK(world.answer<wire::LeaseResized>(by_worker).blocks == 16);
  const CallId by_holder = world.call(kHolder, wire::LeaseGrow{.lease = lease});
  CHECK(world.refusal(by_holder) == Errc::QuotaBlocks);
  CHECK(world.refusal(world.acquire("a")) == Errc::QuotaBlocks);
  CHECK(world.quota_of(world.worker).max_blocks == 8);
  CHECK(world.record(lease).is(LeaseState::Live));
}

TEST_CASE("policy: blocks of a quota lowered below the charge are divided in proportion") {
  DividedWorld world(4);
  world.call(kWorkerSocket, wire::LeaseGrow{.lease = world.first_lease, .extents = 2});
  world.limit(4, 16);  // 24 blocks are charged on the first worker, 8 on the second
  CHECK(world.quota_of(world.worker).max_blocks == 12);
  CHECK(world.quota_of(world.second).max_blocks == 4);
}

TEST_CASE("policy: another worker gets a share only when the first has confirmed that it is free") {
  DividedWorld world(4);
  CHECK(world.quota_of(world.worker).divided);
  world.report(world.worker, {.running = 3, .waiting = 2, .admitted = 3});
  CHECK(world.quota_of(world.second).max_concurrent == 0);

  world.report(world.second, {.waiting = 2});
  CHECK(world.quota_of(world.worker).max_concurrent == 2);
  CHECK(world.quota_of(world.second).max_concurrent == 0);  // the first may run 4

  world.report(world.worker, {.running = 3, .waiting = 2, .admitted = 3});
  CHECK(world.quota_of(world.second).max_concurrent == 1);
  world.report(world.worker, {.running = 2, .waiting = 2, .admitted = 3});
  CHECK(world.quota_of(world.second).max_concurrent == 2);
}

TEST_CASE("policy: a limit of one goes round between two workers with demand") {
  DividedWorld world(1);
  std::uint64_t admitted = 0;
  world.report(world.worker, {.running = 1, .waiting = 5, .admitted = ++admitted});
  for (int round = 1; round < 4; ++round) {
    world.report(world.second, {.waiting = 5, .admitted = admitted - 1});
    CHECK(world.quota_of(world.worker).max_concurrent == 0);
    CHECK(world.quota_of(world.second).max_concurrent == 0);
    world.report(world.worker, {.running = 0, .waiting = 5, .admitted = admitted});
    CHECK(world.quota_of(world.second).max_concurrent == 1);

    world.report(world.second, {.running = 1, .waiting = 4, .admitted = admitted});
    CHECK(world.quota_of(world.second).max_concurrent == 0);
    world.report(world.second, {.running = 0, .waiting = 4, .admitted = admitted});
    CHECK(world.quota_of(world.worker).max_concurrent == 1);
    world.report(world.worker, {.running = 1, .waiting = 4, .admitted = ++admitted});
  }
}

TEST_CASE("policy: the share of a lost worker is free once its leases are revoked") {
  DividedWorld world(2);
  world.report(world.worker, {.running = 2, .admitted = 2});
  world.report(world.second, {.waiting = 2});
  CHECK(world.quota_of(world.second).max_concurrent == 0);

  world.post(ConnectionClosed{kWorkerSocket});
  CHECK(world.quota_of(world.second).max_concurrent == 2);
  CHECK_FALSE(world.quota_of(world.second).divided);
}

TEST_CASE("policy: a share raises no other while its worker may still resume") {
  DividedWorld world(2);
  world.restart();
  world.forget_effects();
  const auto resume = [&world](ConnectionId socket, const char* name, AttachmentId id,
                               LeaseId lease) {
    world.call(socket, wire::WorkerAttach{.worker = name, .resume = id});
    world.call(socket,
               wire::LeaseRedeliver{.lease = lease, .extents = world.record(lease).extents});
    world.call(socket,
               wire::WorkerReady{.address = "/run/w", .kv_block_size_bytes = kTestBlockBytes});
  };
  resume(kReturnSocket, "w0", world.worker, world.first_lease);
  world.report(world.worker, {.running = 1, .waiting = 3, .admitted = 9});
  CHECK(world.quota_of(world.worker).max_concurrent == 0);  // what runs on the other is unknown

  resume(ConnectionId{21}, "w1", world.second, world.second_lease);
  world.report(world.second, {.running = 0});
  CHECK(world.quota_of(world.worker).max_concurrent == 2);
}

TEST_CASE("token rate: the parts of the workers add up to the limit, and follow their requests") {
  DividedWorld world(4);
  const auto parts = [&] {
    return std::pair(world.quota_of(world.worker).rates.tokens_per_minute,
                     world.quota_of(world.second).rates.tokens_per_minute);
  };
  CHECK_FALSE(parts().first);
  world.limit_tokens(600);
  CHECK(parts() == std::pair(std::optional(500u), std::optional(100u)));  // 4 requests and 0
  world.report(world.worker, {.running = 1, .admitted = 1});
  world.report(world.second, {.waiting = 3});
  world.report(world.worker, {.running = 1, .admitted = 1});
  CHECK(world.quota_of(world.worker).max_concurrent == 1);
  CHECK(parts() == std::pair(std::optional(200u), std::optional(400u)));
  world.limit_tokens(60);
  CHECK(parts() == std::pair(std::optional(20u), std::optional(40u)));
  world.limit_tokens(1);  // no worker is left without any
  CHECK(parts() == std::pair(std::optional(1u), std::optional(1u)));
  world.revoke(world.first_lease);
  world.limit_tokens(600);
  CHECK(parts() == std::pair(std::optional<std::uint32_t>(), std::optional(600u)));
}

TEST_CASE(
    "token rate: a tenant gains the tokens of the time without a lease once, up to a minute") {
  QuotaWorld world;
  world.limit(4);
  world.limit_tokens(600);
  const LeaseId first = world.acquired("a");
  CHECK(world.credits() == std::vector<std::uint32_t>{600});
  world.limit_tokens(900);
  world.acquired("a");
  world.advance(std::chrono::seconds(20));
  world.revoke(first);
  CHECK(world.credits() == std::vector<std::uint32_t>{600, 0});
  world.call(kOperator, wire::LeaseRevoke{.tenant = TenantId{"a"}});
  world.advance(std::chrono::seconds(10));
  world.forget_effects();
  const LeaseId next = world.acquired("a");
  CHECK(world.credits() == std::vector<std::uint32_t>{150});
  world.revoke(next);
  world.advance(std::chrono::seconds(59));
  world.forget_effects();
  world.attach_worker("w1", kDividedSocket);
  world.acquire_on("w1");
  world.acquire_on("w0");
  CHECK(world.credits().at(0) == 885);
  const std::vector<std::uint32_t> all = world.credits();
  CHECK(std::accumulate(all.begin(), all.end(), 0u) == 885);
}

TEST_CASE("token rate: a limit of no tokens is refused, and the earlier one is kept") {
  QuotaWorld world;
  world.limit_tokens(600);
  const auto refused =
      world.call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .rates = {.tokens_per_minute = 0}});
  CHECK(world.refusal(refused) == Errc::BadRequest);
  world.limit(4);
  CHECK(world.journal.tenants.at({"a"}).policy.rates.tokens_per_minute == 600u);
}

TEST_CASE("admit: an existing tenant keeps the limits that are not given") {
  ServingWorld world;
  world.call(kOperator, wire::TenantAdmit{.tenant = {"a"},
                                          .max_concurrent = 4,
                                          .tier = wire::Tier::Guaranteed,
                                          .ttl_ms = 500,
                                          .max_lifetime_ms = 60'000,
                                          .uid = 9});
  world.call(kOperator, wire::TenantAdmit{.tenant = {"a"}, .weight = 7});

  const wire::TenantPolicy& policy = world.journal.tenants.at({"a"}).policy;
  CHECK(policy.max_concurrent == 4);
  CHECK(policy.max_blocks == 1024);
  CHECK(policy.weight == 7);
  CHECK(policy.tier == wire::Tier::Guaranteed);
  CHECK(policy.ttl_ms == 500);
  CHECK(policy.max_lifetime_ms == 60'000);
  CHECK(policy.uid == 9u);
}

TEST_CASE("remove: a tenant with live leases stays, unless they are to be revoked") {
  LeasedWorld world;
  CHECK(world.refusal(world.call(kOperator, wire::TenantRemove{.tenant = {"a"}})) ==
        Errc::IllegalTransition);
  CHECK(world.record(world.lease).is(LeaseState::Live));
  CHECK(world.refusal(world.call(kOperator, wire::TenantRemove{.tenant = {"b"}})) ==
        Errc::UnknownTenant);

  const CallId removed = world.call(kOperator, wire::TenantRemove{.tenant = {"a"}, .revoke = true});
  CHECK(world.answer<wire::LeasesTouched>(removed).leases == std::vector{world.lease});
  CHECK(reason_of(world.record(world.lease).lease) == RevokeReason::PolicyChanged);
  CHECK(world.refusal(world.acquire("a")) == Errc::UnknownTenant);
  CHECK(world.state.extents.records().empty());  // its memory is back
}

TEST_CASE("remove: a removed tenant stays removed after a broker restart") {
  LeasedWorld world;
  world.call(kOperator, wire::TenantRemove{.tenant = {"a"}, .revoke = true});
  World next(world, {});
  next.attach_worker("w1", ConnectionId{31});
  CHECK(next.refusal(next.acquire("a")) == Errc::UnknownTenant);
}

TEST_CASE("policy: what workers served a tenant adds up, and a worker that exits caches nothing") {
  DividedWorld world(4);
  const auto report = [&](AttachmentId id, wire::TenantServed served) {
    served.tenant = {"a"};
    world.post(ServedReported{world.state.workers.find(id)->connection, served});
  };
  const auto view = [&] {
    return tenant_views(world.state, std::nullopt, 1, world.clock.now()).at(0).served;
  };
  CHECK(view().tenant == TenantId{"a"});
  report(world.worker, {.tokens = 100, .hit_blocks = 2, .hit_tokens = 32, .cached_blocks = 7});
  report(world.second, {.tokens = 10, .evicted_blocks = 3, .preemptions = 4, .cached_blocks = 5});
  report(world.worker, {.tokens = 1, .cross_tenant_hits = 1, .cached_blocks = 6});
  CHECK(view().tokens == 111);
  CHECK(view().hit_blocks == 2);
  CHECK(view().hit_tokens == 32);
  CHECK(view().evicted_blocks == 3);
  CHECK(view().preemptions == 4);
  CHECK(view().cross_tenant_hits == 1);
  CHECK(view().cached_blocks == 6 + 5);

  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(view().cached_blocks == 5);
  CHECK(view().tokens == 111);
  report(world.second, {.tokens = 1, .cached_blocks = 4});
  CHECK(world.state.tenants.find({"a"})->cached_blocks.size() == 1);
  world.post(ServedReported{kDividedSocket, {.tenant = {"stranger"}, .tokens = 5}});
  CHECK(view().tokens == 112);
}

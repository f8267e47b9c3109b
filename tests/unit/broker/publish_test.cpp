#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

constexpr ConnectionId kFilling{10};  // of the worker

BrokerConfig bounded(std::uint32_t max_shared_blocks) {
  BrokerConfig config = small_config();
  config.max_shared_blocks = max_shared_blocks;
  return config;
}

struct Publisher : World {
  explicit Publisher(std::uint32_t max_shared_blocks = 1024) : World(bounded(max_shared_blocks)) {}

  AttachmentId worker = attach_worker("w0", kFilling);

  CallId publish(const std::string& text = "You are") {
    return call(kOperator, wire::PrefixPublish{.worker = "w0", .text = text, .name = "rules"});
  }
  /// Publishes a text, and returns its lease.
  LeaseId published(std::uint32_t blocks = 3) { return published_text("You are", blocks); }
  LeaseId published_text(const std::string& text, std::uint32_t blocks = 3) {
    const CallId publishing = publish(text);
    post(FillAnswered{fills.back().fill.lease, wire::PrefixFilled{.tokens = 61, .blocks = blocks}});
    return answer<wire::PrefixPublished>(publishing).lease;
  }
};

}  // namespace

TEST_CASE(
    "publish: the worker gets memory of a shared lease, then the text, then the caller hears") {
  Publisher world;
  const CallId publishing = world.publish();
  REQUIRE(world.fills.size() == 1);
  const LeaseId lease = world.fills[0].fill.lease;
  CHECK(world.fills[0].fill.text == "You are");
  const auto grants = world.performed<effect::SendGrant>();
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].grant.scope == wire::LeaseScope::Shared);
  CHECK(grants[0].grant.tenant.value.empty());
  CHECK_FALSE(world.answers.contains(publishing));

  world.post(FillAnswered{lease, wire::PrefixFilled{.tokens = 61, .blocks = 3}});
  const auto published = world.answer<wire::PrefixPublished>(publishing);
  CHECK(published.lease == lease);
  CHECK(published.tokens == 61);
  CHECK(published.blocks == 3);
  CHECK(world.record(lease).is(LeaseState::Live));
  CHECK(world.record(lease).part == "rules");
  CHECK(world.record(lease).deadline == TimePoint{});
}

TEST_CASE(
    "publish: a text that the worker cannot compute ends the lease, with the worker's error") {
  Publisher world;
  const CallId publishing = world.publish();
  const LeaseId lease = world.fills[0].fill.lease;
  world.post(FillAnswered{lease, fail(Errc::BadRequest, "too short")});
  CHECK(world.refusal(publishing) == Errc::BadRequest);
  CHECK_FALSE(world.record(lease).is(LeaseState::Live));
}

TEST_CASE("publish: a revocation of a published text waits for units that touch tenant memory") {
  Publisher world;
  const LeaseId lease = world.published();
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(lease);
  CHECK(world.record(lease).is(LeaseState::Revoked));
  const auto watches = world.performed<effect::BeginQuietWatch>();
  REQUIRE(watches.size() == 1);
  CHECK(watches[0].scope == Touches::TenantMemory);
  world.end_unit(world.worker);
  world.post(Tick{});
  CHECK(world.proof_of(lease) == "LaunchQuiet");
}

TEST_CASE("publish: a revocation during the fill answers the caller, and a late reply is ignored") {
  Publisher world;
  const CallId publishing = world.publish();
  const LeaseId lease = world.fills[0].fill.lease;
  world.revoke(lease);
  CHECK(world.refusal(publishing) == Errc::LeaseRevoked);
  world.post(FillAnswered{lease, wire::PrefixFilled{.tokens = 61, .blocks = 3}});
  CHECK_FALSE(world.record(lease).is(LeaseState::Live));
}

TEST_CASE(
    "publish: published texts have a bound of their own, growth included, and no tenant pays") {
  Publisher unbounded;
  const LeaseId first = unbounded.published();
  const std::uint32_t per_extent =
      unbounded.state.workers.find(unbounded.worker)->blocks_per_extent;
  CHECK(unbounded.state.leases.index().charged({"ann"}) == 0);
  CHECK(
      unbounded.refusal(unbounded.call(kFilling, wire::LeaseGrow{.lease = first, .extents = 1})) ==
      Errc::PermissionDenied);  // it holds its text

  Publisher world(2 * per_extent);
  const CallId publishing = world.publish();
  const LeaseId lease = world.fills[0].fill.lease;
  const wire::LeaseGrow grow{.lease = lease, .extents = 1};
  (void)world.answer<wire::LeaseResized>(world.call(kFilling, grow));
  CHECK(world.refusal(world.call(kFilling, grow)) == Errc::QuotaBlocks);
  CHECK(world.refusal(world.publish("another")) == Errc::QuotaBlocks);
  world.post(FillAnswered{lease, wire::PrefixFilled{.tokens = 61, .blocks = 3}});
  CHECK(world.answer<wire::PrefixPublished>(publishing).blocks == 3);
}

TEST_CASE("publish: a text that its operator has published on the worker keeps its lease") {
  Publisher world;
  const LeaseId lease = world.published();
  const auto again = world.answer<wire::PrefixPublished>(world.publish());
  CHECK(again.lease == lease);
  CHECK(again.tokens == 61);
  CHECK(again.blocks == 3);
  CHECK(world.fills.size() == 1);
  CHECK(world.published_text("another") != lease);

  world.revoke(lease);
  CHECK(world.published() != lease);
}

TEST_CASE("publish: a text that is being computed is not computed twice") {
  Publisher world;
  const CallId publishing = world.publish();
  CHECK(world.refusal(world.publish()) == Errc::QueueFull);
  CHECK(world.fills.size() == 1);
  world.post(
      FillAnswered{world.fills[0].fill.lease, wire::PrefixFilled{.tokens = 61, .blocks = 3}});
  CHECK(world.answer<wire::PrefixPublished>(publishing).blocks == 3);
}

TEST_CASE("publish: errors about a published text name its scope") {
  Publisher world(1);
  const CallId over_limit = world.publish();
  CHECK(world.error_of(over_limit).scope == FailureScope::Shared);

  Publisher other;
  const CallId publishing = other.publish();
  other.revoke(other.fills[0].fill.lease);
  CHECK(other.error_of(publishing).scope == FailureScope::Shared);
}

TEST_CASE("publish: a text whose worker died is published again on a worker that serves the same") {
  Publisher world;
  world.published();
  world.post(WorkerExited{exit_of(world.worker)});

  world.attach_worker("another", ConnectionId{31});
  CHECK(world.fills.size() == 1);
  world.attach_worker("w0", ConnectionId{32});

  REQUIRE(world.fills.size() == 2);
  CHECK(world.fills[1].fill.text == "You are");
  const LeaseId again = world.fills[1].fill.lease;
  world.post(FillAnswered{again, wire::PrefixFilled{.tokens = 61, .blocks = 3}});
  CHECK(world.record(again).charged_blocks == 3);
  CHECK(world.record(again).part == "rules");
  CHECK(world.state.lost_texts.empty());
  CHECK(world.warnings.empty());
}

TEST_CASE("publish: a text that an operator revoked is not published again") {
  Publisher world;
  world.revoke(world.published());
  world.post(WorkerExited{exit_of(world.worker)});
  world.attach_worker("w0", ConnectionId{32});
  CHECK(world.fills.size() == 1);
}

TEST_CASE("publish: a tenant's calls on a shared lease are refused, and so is its drain") {
  Publisher world;
  world.admit_tenant("ann");
  const LeaseId lease = world.published();
  CHECK(world.refusal(world.call(kHolder, wire::LeaseRenew{.lease = lease})) == Errc::UnknownLease);
  CHECK(world.refusal(world.call(kHolder, wire::LeaseGrow{.lease = lease, .extents = 1})) ==
        Errc::UnknownLease);
  CHECK(world.refusal(world.call(kOperator, wire::LeaseDrain{.lease = lease})) == Errc::BadRequest);
  CHECK(world.record(lease).is(LeaseState::Live));
}

TEST_CASE("publish: a published text survives a broker restart, and one that was not filled ends") {
  const bool filled = GENERATE(true, false);
  Publisher before;
  if (!filled) before.publish();
  if (filled) (void)before.published();
  const LeaseId lease = before.fills[0].fill.lease;
  World after(before, {});
  REQUIRE(after.state.leases.find_open(lease) != nullptr);
  CHECK(after.record(lease).scope == wire::LeaseScope::Shared);
  CHECK(after.record(lease).is(LeaseState::Live));
  CHECK((after.record(lease).charged_blocks > 0) == filled);
  CHECK(after.record(lease).request == before.record(lease).request);
  CHECK(after.record(lease).request.digest != 0);
}

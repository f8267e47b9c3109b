#include <catch2/catch.hpp>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr ConnectionId kFirst{10};
constexpr ConnectionId kSecond{11};

wire::WeightsOpen weights(std::uint64_t inode, std::uint64_t size_bytes = 40 * kMiB) {
  return {.model = "m", .file_inode = inode, .layout_digest = "d", .size_bytes = size_bytes};
}

constexpr std::uint32_t kAnn = 1001, kBob = 1002;

/// Two users that may run workers, and workers of both.
struct TwoUsers : World {
  using World::World;

  ConnectionId attach(const std::string& name, std::uint32_t uid) {
    const ConnectionId connection{next_connection_++};
    (void)answer<wire::WorkerAttached>(call(connection, wire::WorkerAttach{.worker = name}, uid));
    return connection;
  }
  /// Opens and publishes weights of a file of its own; nothing if that is refused.
  std::optional<wire::WeightsOpened> load(ConnectionId worker, std::uint64_t size_bytes) {
    const CallId opening = call(worker, weights(next_inode_++, size_bytes));
    if (!answers.at(opening)) return std::nullopt;
    const auto opened = answer<wire::WeightsOpened>(opening);
    call(worker, wire::WeightsPublish{.region = opened.region});
    return opened;
  }
  /// How often a worker loads before it is refused.
  std::size_t load_all(ConnectionId worker, std::uint64_t size_bytes) {
    std::size_t loaded = 0;
    while (load(worker, size_bytes)) ++loaded;
    return loaded;
  }

  static BrokerConfig config() {
    BrokerConfig config = small_config();
    config.worker_users = 2;
    return config;
  }

 private:
  std::uint64_t next_connection_ = 30;
  std::uint64_t next_inode_ = 1;
};

struct TwoWorkers : World {
  using World::World;

  AttachmentId first = attach_worker("w0", kFirst);
  AttachmentId second = attach_worker("w1", kSecond);

  wire::WeightsOpened open(ConnectionId worker, std::uint64_t inode) {
    return answer<wire::WeightsOpened>(call(worker, weights(inode)));
  }
  wire::WeightsOpened load(ConnectionId worker, std::uint64_t inode) {
    const auto opened = open(worker, inode);
    call(worker, wire::WeightsPublish{.region = opened.region});
    return opened;
  }
  RegionState region_state(RegionId region) { return state.weights.find(region)->state; }
};

}  // namespace

TEST_CASE("weights: the loader writes, other workers wait and then share read-only") {
  TwoWorkers world;
  const CallId loading = world.call(kFirst, weights(1));
  const RegionId region = world.answer<wire::WeightsOpened>(loading).region;
  CHECK(std::get<RegionDescriptor>(world.answers.at(loading)->descriptors).writable);
  CHECK(world.refusal(world.call(kSecond, weights(1))) == Errc::WeightsLoading);

  world.call(kFirst, wire::WeightsPublish{.region = region});
  const CallId sharing = world.call(kSecond, weights(1));

  const auto shared = world.answer<wire::WeightsOpened>(sharing);
  CHECK(shared.published);
  CHECK(shared.region == region);
  CHECK_FALSE(std::get<RegionDescriptor>(world.answers.at(sharing)->descriptors).writable);
  CHECK(world.state.weights.free_bytes() == 24 * kMiB);  // one copy
}

TEST_CASE("weights: the refusal of a long name says which one and its length") {
  TwoWorkers world;
  wire::WeightsOpen open = weights(1);
  open.part = std::string(300, 'p');
  const CallId call = world.call(kFirst, open);
  CHECK(world.answers.at(call).error().detail == "part has 300 bytes; send at most 256");
}

TEST_CASE("weights: a loader that opens again continues under its lease") {
  TwoWorkers world;
  const auto first = world.open(kFirst, 1);

  const CallId again = world.call(kFirst, weights(1));

  const auto opened = world.answer<wire::WeightsOpened>(again);
  CHECK(opened.region == first.region);
  CHECK(opened.lease == first.lease);
  CHECK_FALSE(opened.published);
  CHECK(std::get<RegionDescriptor>(world.answers.at(again)->descriptors).writable);
  CHECK(world.refusal(world.call(kSecond, weights(1))) == Errc::WeightsLoading);
}

TEST_CASE("weights: a region with a writable mapping is not published; a retry may succeed") {
  TwoWorkers world;
  const RegionId region = world.open(kFirst, 1).region;
  const wire::WeightsPublish publish{.region = region, .request_id = {"same"}};
  world.seal_fails = true;
  CHECK(world.refusal(world.call(kFirst, publish)) == Errc::StillWritable);
  CHECK(world.region_state(region) == RegionState::Loading);
  world.seal_fails = false;
  CHECK(world.answers.at(world.call(kFirst, publish)).has_value());
  CHECK(world.region_state(region) == RegionState::Published);
}

TEST_CASE("weights: a region is scrubbed and freed when its loader dies") {
  TwoWorkers world;
  const auto opened = world.open(kFirst, 1);
  world.post(WorkerExited{exit_of(world.first)});
  CHECK(world.proof_of(opened.lease) == "ProcessExit");
  CHECK(world.state.weights.free_bytes() == 64 * kMiB);
  CHECK_FALSE(world.open(kSecond, 1).published);
}

TEST_CASE("weights: a published region outlives its workers until it is evicted") {
  TwoWorkers world;
  const auto opened = world.load(kFirst, 1);
  world.post(WorkerExited{exit_of(world.first)});
  CHECK(world.region_state(opened.region) == RegionState::Retained);

  SECTION("the next worker gets the same bytes") {
    const auto again = world.open(kSecond, 1);
    CHECK(again.published);
    CHECK(again.region == opened.region);
    CHECK(again.lease != opened.lease);
    CHECK(world.region_state(opened.region) == RegionState::Published);
  }
  SECTION("other weights push them out") {
    world.open(kSecond, 2);
    CHECK(world.state.weights.find(opened.region) == nullptr);
  }
}

TEST_CASE("weights: a region in use is not evicted") {
  TwoWorkers world;
  world.load(kFirst, 1);
  CHECK(world.refusal(world.call(kSecond, weights(2))) == Errc::PoolExhausted);
}

TEST_CASE("weights: an engine lease waits for every unit, whatever it touches") {
  TwoWorkers world;
  const auto opened = world.load(kFirst, 1);
  world.begin_unit(world.first, Touches::WeightsAndScratch);
  world.revoke(opened.lease);
  CHECK(world.record(opened.lease).is(LeaseState::Revoked));
  world.end_unit(world.first);
  CHECK(world.proof_of(opened.lease) == "LaunchQuiet");
  CHECK(world.region_state(opened.region) == RegionState::Retained);
}

TEST_CASE("weights: a lease that ends before its region was sent is fenced without its worker") {
  BrokerConfig config = small_config();
  SECTION("in host memory") {}
  SECTION("on a device, whose worker would be asked to settle") {
    config.device = "cuda:0";
    config.device_uuid = "GPU-1";
  }
  TwoWorkers world(config);
  world.workers_answer = false;
  world.regions_wait = true;
  const CallId opening = world.call(kFirst, weights(1));
  const auto created = world.performed<effect::CreateRegion>();
  REQUIRE(created.size() == 1);

  world.revoke(created[0].lease);

  CHECK(world.refusal(opening) == Errc::LeaseRevoked);
  CHECK(world.proof_of(created[0].lease) == "NeverMapped");
  CHECK(world.settles.empty());
  CHECK(world.unmaps.empty());
  world.post(RegionLent{created[0].lease, std::nullopt});
  CHECK(world.state.weights.free_bytes() == 64 * kMiB);
}

TEST_CASE("weights: parts of one file are separate regions that are revoked separately") {
  TwoWorkers world;
  wire::WeightsOpen embedding = weights(1, 4 * kMiB);
  wire::WeightsOpen layer = weights(1, 8 * kMiB);
  embedding.part = "token_embd";
  layer.part = "blk.0";
  layer.layout_digest = "e";
  const auto first = world.answer<wire::WeightsOpened>(world.call(kFirst, embedding));
  world.call(kFirst, wire::WeightsPublish{.region = first.region});
  const auto second = world.answer<wire::WeightsOpened>(world.call(kFirst, layer));
  world.call(kFirst, wire::WeightsPublish{.region = second.region});
  CHECK(first.region != second.region);

  world.revoke(second.lease);

  CHECK(world.record(first.lease).is(LeaseState::Live));
  CHECK(world.region_state(first.region) == RegionState::Published);
  CHECK(world.region_state(second.region) == RegionState::Retained);
  const auto again = world.answer<wire::WeightsOpened>(world.call(kFirst, layer));
  CHECK(again.published);
  CHECK(again.region == second.region);
  CHECK(again.lease != second.lease);

  const auto views = lease_page(world.state, 0, 10).items;
  REQUIRE(views.size() >= 2);
  CHECK(views[0].model == "m");
  CHECK(views[0].part == "token_embd");
  CHECK(views[1].part == "blk.0");
}

TEST_CASE("weights: the number of engine leases per worker is limited until they are closed") {
  BrokerConfig config = small_config();
  config.max_engine_leases = 3;
  TwoWorkers world(config);
  std::vector<LeaseId> leases;
  for (std::uint64_t inode = 1; inode <= 3; ++inode) {
    const auto opened = world.answer<wire::WeightsOpened>(world.call(kFirst, weights(inode, kMiB)));
    world.call(kFirst, wire::WeightsPublish{.region = opened.region});
    leases.push_back(opened.lease);
  }
  const std::uint64_t free_bytes = world.state.weights.free_bytes();
  CHECK(world.refusal(world.call(kFirst, weights(4, kMiB))) == Errc::PoolExhausted);
  CHECK(world.state.weights.free_bytes() == free_bytes);
  CHECK(world.answers.at(world.call(kSecond, weights(1, kMiB))).has_value());
  CHECK(world.answers.at(world.call(kFirst, weights(2, kMiB)))
            .has_value());  // it already has this lease

  world.revoke(leases[0]);
  CHECK(world.answers.at(world.call(kFirst, weights(4, kMiB))).has_value());
}

TEST_CASE("weights: the number of regions is limited; the oldest unused one is evicted") {
  BrokerConfig config = small_config();
  config.max_weights_regions = 2;
  TwoWorkers world(config);
  const auto oldest = world.answer<wire::WeightsOpened>(world.call(kFirst, weights(1, 64)));
  world.call(kFirst, wire::WeightsPublish{.region = oldest.region});
  CHECK(world.answers.at(world.call(kFirst, weights(2, 64))).has_value());
  CHECK(world.refusal(world.call(kSecond, weights(3, 64))) == Errc::PoolExhausted);
  world.revoke(oldest.lease);  // published without users: retained
  CHECK(world.answers.at(world.call(kSecond, weights(3, 64))).has_value());
  CHECK(world.state.weights.find(oldest.region) == nullptr);
}

TEST_CASE("weights: an engine lease has no deadline and survives another's revocation") {
  TwoWorkers world;
  const auto mine = world.load(kFirst, 1);
  const auto other = world.open(kSecond, 1);
  world.revoke(mine.lease);
  world.advance(std::chrono::hours(100));
  CHECK(world.record(other.lease).is(LeaseState::Live));
  CHECK(world.region_state(mine.region) == RegionState::Published);
}

TEST_CASE("weights: a part is revoked by name, a layer with all its parts") {
  TwoWorkers world;
  std::uint64_t inode = 0;
  const auto open = [&](ConnectionId worker, const std::string& part) {
    wire::WeightsOpen message = weights(++inode, kMiB);
    message.part = part;
    return world.answer<wire::WeightsOpened>(world.call(worker, message)).lease;
  };
  const LeaseId up = open(kFirst, "blk.1.ffn_up.weight");
  const LeaseId down = open(kFirst, "blk.1.ffn_down.weight");
  const LeaseId tenth = open(kFirst, "blk.10.ffn_up.weight");
  const LeaseId elsewhere = open(kSecond, "blk.1.ffn_up.weight");
  const auto revoke = [&](const std::string& part, std::optional<std::string> worker = {}) {
    return world.call(kOperator, wire::LeaseRevoke{.part = part, .worker = std::move(worker)});
  };

  const CallId one = revoke("blk.1.ffn_up.weight", "w0");
  CHECK(world.answer<wire::LeasesTouched>(one).leases == std::vector{up});
  const auto last_object = [&] { return world.recorded<events::OperatorAction>().back().object; };
  CHECK(last_object() == "part:blk.1.ffn_up.weight@w0");
  const CallId layer = revoke("blk.1");
  CHECK(world.answer<wire::LeasesTouched>(layer).leases == std::vector{down, elsewhere});
  CHECK(last_object() == "part:blk.1");

  CHECK(world.record(tenth).is(LeaseState::Live));
  CHECK(world.refusal(revoke("blk.1")) == Errc::UnknownLease);  // they have ended

  world.begin_unit(world.first, Touches::WeightsAndScratch);
  CHECK(world.answer<wire::LeasesTouched>(revoke("blk")).leases == std::vector{tenth});
  CHECK(world.record(tenth).is(LeaseState::Revoked));
  CHECK(world.refusal(revoke("blk")) == Errc::UnknownLease);  // revoked, but not fenced yet
}

TEST_CASE("weights: workers of another user never get a region") {
  World world;
  world.attach_worker("w0", kFirst);
  const auto mine = world.answer<wire::WeightsOpened>(world.call(kFirst, weights(1, 20 * kMiB)));
  world.call(kFirst, wire::WeightsPublish{.region = mine.region});
  constexpr std::uint32_t kOther = 1001;
  world.call(kSecond, wire::WorkerAttach{.worker = "w1"}, kOther);

  const CallId opening = world.call(kSecond, weights(1, 20 * kMiB), kOther);
  const auto theirs = world.answer<wire::WeightsOpened>(opening);

  CHECK_FALSE(theirs.published);
  CHECK(theirs.region != mine.region);
  CHECK(std::get<RegionDescriptor>(world.answers.at(opening)->descriptors).writable);
}

TEST_CASE("weights: workers of one user leave another user its share of the regions") {
  BrokerConfig config = TwoUsers::config();
  config.max_weights_regions = 8;
  TwoUsers world(config);
  std::size_t taken = 0;
  for (const std::string name : {"a0", "a1", "a2"})
    taken += world.load_all(world.attach(name, kAnn), 64);
  CHECK(taken == 4);
  CHECK(world.load_all(world.attach("b0", kBob), 64) == 4);
}

TEST_CASE("weights: workers of one user leave another user its share of the bytes") {
  TwoUsers world(TwoUsers::config());
  const ConnectionId ann = world.attach("a0", kAnn);
  CHECK(world.load_all(ann, 12 * kMiB) == 2);  // of 32 MiB
  CHECK(world.load(world.attach("b0", kBob), 32 * kMiB));

  const CallId refused = world.call(ann, weights(99, 12 * kMiB));
  CHECK(world.refusal(refused) == Errc::PoolExhausted);
  CHECK(world.answers.at(refused).error().detail.find("user 1001 holds") != std::string::npos);
  const CallId huge = world.call(ann, weights(99, ~0ull));
  CHECK(world.answers.at(huge).error().detail.find("never fit") != std::string::npos);
}

TEST_CASE("weights: a user's retained regions are evicted for that user only") {
  BrokerConfig config = TwoUsers::config();
  config.max_weights_regions = 4;
  TwoUsers world(config);
  const ConnectionId ann = world.attach("a0", kAnn), bob = world.attach("b0", kBob);
  const auto of_bob = world.load(bob, kMiB).value();
  world.revoke(of_bob.lease);  // retained, and the oldest
  const auto of_ann = world.load(ann, kMiB).value();
  world.revoke(of_ann.lease);

  CHECK(world.load_all(ann, kMiB) == 2);

  CHECK(world.state.weights.find(of_ann.region) == nullptr);
  CHECK(world.state.weights.find(of_bob.region) != nullptr);
}

TEST_CASE("weights: a user within its share keeps its retained regions where another exceeds its") {
  WeightsStore store({.capacity_bytes = 99 * kMiB, .max_regions = 9, .worker_users = 3});
  const auto retain = [&store](std::uint32_t uid, std::uint64_t size_bytes) {
    WeightsRegion& region = store.add({.file_inode = uid, .worker_uid = uid}, size_bytes, {});
    move(region, RegionState::Published);
    store.retain(region);
    return region.id;
  };
  constexpr std::uint32_t kCarol = 1003;
  retain(kBob, 20 * kMiB);  // the oldest
  const RegionId of_carol = retain(kCarol, 60 * kMiB);

  CHECK(store.room_for(30 * kMiB, kAnn) == std::vector{of_carol});
  CHECK(store.room_for(19 * kMiB, kAnn) == std::vector<RegionId>{});
}

TEST_CASE("weights: workers of one user leave slots for tenants and for another user") {
  BrokerConfig config = TwoUsers::config();
  config.slot_count = 16;
  TwoUsers world(config);
  std::size_t taken = 0;
  for (const std::string name : {"a0", "a1"}) taken += world.load_all(world.attach(name, kAnn), 64);
  CHECK(taken == 4);
  CHECK(world.load_all(world.attach("b0", kBob), 64) == 4);
  CHECK(world.state.leases.has_free_slot());
}

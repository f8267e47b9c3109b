// Texts that are published under an adapter.
#include <algorithm>
#include <catch2/catch.hpp>

#include "broker/server/views/lease_view.hpp"
#include "common/random.hpp"
#include "tests/support/test_seed.hpp"
#include "tests/unit/broker/adapter_world.hpp"

using namespace leasehold;

namespace {

/// A worker with the shared adapter "tone", and an operator who publishes texts.
struct TextWorld : AdapterWorld {
  explicit TextWorld() { add("tone", ""); }

  CallId publish(const std::optional<std::string>& adapter, const std::string& text = "You are") {
    wire::PrefixPublish message{.worker = "w0", .text = text, .name = "rules"};
    if (adapter) message.adapter = AdapterName{*adapter};
    return call(kOperator, message);
  }
  void finish_fill() {
    post(FillAnswered{fills.back().fill.lease, wire::PrefixFilled{.tokens = 61, .blocks = 3}});
  }
  /// Publishes a text, and returns its lease.
  LeaseId published(const std::optional<std::string>& adapter = "tone") {
    const CallId publishing = publish(adapter);
    finish_fill();
    return answer<wire::PrefixPublished>(publishing).lease;
  }
  LeaseId load(std::uint32_t version = 1) {
    return filled("tone", {.tenant = {}, .version = version});
  }
  bool is_live(LeaseId lease) { return record(lease).is(LeaseState::Live); }
  std::uint32_t newest() const {
    const journal::AdapterRow* tone = state.adapters.find({"tone"});
    return tone == nullptr ? 0 : tone->version;
  }
};

/// Random events of operators and of a worker, which may exit.
struct TextWalk : TextWorld {
  void act() {
    switch (random.below(9)) {
      case 0:
        return (void)add("tone", "");
      case 1:
        return (void)remove("tone");
      case 2:
      case 3:
        return (void)publish("tone", std::to_string(random.below(3)));
      case 4:
        return answer_fill();
      case 5:
        return (void)open("tone", {.tenant = {}, .version = newest(), .connection = socket});
      case 6:
        if (const auto lease = any_live(wire::LeaseScope::Adapter))
          call(socket, wire::AdapterClose{.lease = *lease});
        return;
      case 7:
        if (const auto lease = any_live(wire::LeaseScope::Shared)) revoke(*lease);
        return;
      default:
        if (random.below(8) == 0) replace_worker();
    }
  }
  void answer_fill() {
    if (fills.empty()) return;
    const LeaseId lease = fills.front().fill.lease;
    fills.pop_front();
    if (random.below(4) == 0)
      return post(FillAnswered{lease, fail(Errc::MissingWeight, "no file")});
    post(FillAnswered{lease, wire::PrefixFilled{.tokens = 61, .blocks = 3}});
  }
  void replace_worker() {
    post(WorkerExited{exit_of(worker)});
    fills.clear();
    socket = ConnectionId{socket.value + 1};
    worker = attach_worker("w0", socket);
  }
  std::vector<const LeaseRecord*> live(wire::LeaseScope scope) const {
    std::vector<const LeaseRecord*> found;
    for (const LeaseId id : state.leases.open_leases()) {
      const LeaseRecord* record = state.leases.find_open(id);
      if (record->scope == scope && record->is(LeaseState::Live)) found.push_back(record);
    }
    return found;
  }
  std::optional<LeaseId> any_live(wire::LeaseScope scope) {
    const auto found = live(scope);
    return found.empty() ? std::nullopt : std::optional(found[random.below(found.size())]->id());
  }
  bool is_loaded(std::uint32_t version) const {
    return std::ranges::any_of(live(wire::LeaseScope::Adapter), [version](const auto* record) {
      return record->adapter_version == version;
    });
  }

  SeededRandom random{testing::test_seed()};
  ConnectionId socket = kWorkerSocket;
};

}  // namespace

TEST_CASE("publish: a text is filled under the present version of a shared adapter, and shows it") {
  TextWorld world;
  world.add("tone", "");
  const LeaseId text = world.published();
  CHECK(world.fills.back().fill.adapter == AdapterName{"tone"});
  CHECK(world.fills.back().fill.adapter_version == 2);
  CHECK(lease_view(world.state, world.record(text)).model == "tone@2");
  const LeaseId base = world.published(std::nullopt);
  CHECK_FALSE(world.fills.back().fill.adapter);
  CHECK(lease_view(world.state, world.record(base)).model.empty());
}

TEST_CASE("publish: a tenant's own adapter is refused for a text, and so is an unknown one") {
  TextWorld world;
  world.add("own", "a");
  const Error refused = world.error_of(world.publish("own"));
  CHECK(refused.code == Errc::BadRequest);
  CHECK(
      refused.detail ==
      "adapter own belongs to tenant a, and every tenant may read a published text; name a shared "
      "adapter");
  CHECK(world.refusal(world.publish("nothing")) == Errc::UnknownAdapter);
  world.remove("tone");
  CHECK(world.refusal(world.publish("tone")) == Errc::UnknownAdapter);
  CHECK(world.fills.empty());
}

TEST_CASE(
    "publish: one text of two adapters, versions or of the base model has leases of its own") {
  TextWorld world;
  world.add("other", "");
  world.load();
  const LeaseId first = world.published();
  CHECK(world.answer<wire::PrefixPublished>(world.publish("tone")).lease == first);
  CHECK(world.published(std::nullopt) != first);
  CHECK(world.published("other") != first);
  world.add("tone", "");
  CHECK(world.published() != first);
  CHECK(world.is_live(first));
}

TEST_CASE(
    "publish: a text ends with the lease of its adapter's version once that is not the newest") {
  const bool is_removed = GENERATE(true, false);
  TextWorld world;
  const LeaseId adapter = world.load();
  const LeaseId text = world.published();
  const LeaseId base = world.published(std::nullopt);
  if (is_removed) {
    world.remove("tone");
  } else {
    world.add("tone", "");
  }
  CHECK(world.is_live(text));  // texts that run under the version may read it
  world.close(adapter);
  CHECK_FALSE(world.is_live(text));
  CHECK(world.reason(text) == RevokeReason::ModelUnloaded);
  CHECK(world.is_live(base));
}

TEST_CASE(
    "publish: a text of an adapter that is not loaded ends when that is replaced or removed") {
  const bool is_removed = GENERATE(true, false);
  TextWorld world;
  const LeaseId adapter = world.load();
  const LeaseId text = world.published();
  world.close(adapter);  // for lack of room
  CHECK(world.is_live(text));
  if (is_removed) {
    world.remove("tone");
  } else {
    world.add("tone", "");
  }
  CHECK_FALSE(world.is_live(text));
}

TEST_CASE("publish: a change of another adapter or on another worker keeps a text") {
  TextWorld world;
  world.add("other", "");
  world.load();
  const LeaseId text = world.published();
  const ConnectionId second{11};
  world.attach_worker("w1", second);
  const LeaseId there = world.opened("tone", {.tenant = {}, .connection = second});
  world.remove("other");
  world.add("tone", "");
  world.call(second, wire::AdapterClose{.lease = there});
  CHECK(world.is_live(text));
}

TEST_CASE(
    "publish: a revocation of the adapter takes its texts too, but one of its lease does not") {
  TextWorld world;
  LeaseId adapter = world.load();
  const LeaseId text = world.published();
  world.revoke(adapter);
  CHECK(world.is_live(text));
  adapter = world.load();
  const CallId revoking = world.call(kOperator, wire::LeaseRevoke{.adapter = AdapterName{"tone"}});
  const auto touched = world.answer<wire::LeasesTouched>(revoking).leases;
  CHECK(std::ranges::find(touched, text) != touched.end());
  CHECK(std::ranges::find(touched, adapter) != touched.end());
  CHECK(world.reason(text) == RevokeReason::Operator);
}

TEST_CASE("publish: a lost text comes back under the same version of its adapter, or not at all") {
  const bool is_replaced = GENERATE(true, false);
  TextWorld world;
  (void)world.published();
  world.post(WorkerExited{exit_of(world.worker)});
  if (is_replaced) world.add("tone", "");
  world.attach_worker("w0", ConnectionId{32});
  CHECK(world.fills.size() == (is_replaced ? 1 : 2));
  CHECK(world.warnings.size() == (is_replaced ? 1 : 0));
  CHECK(world.state.lost_texts.empty());
  if (is_replaced) return;
  CHECK(world.fills.back().fill.adapter == AdapterName{"tone"});
  CHECK(world.fills.back().fill.adapter_version == 1);
}

TEST_CASE("publish: after a broker restart a text still belongs to its adapter") {
  TextWorld before;
  const LeaseId text = before.published();
  World after(before, {});
  REQUIRE(after.state.leases.find_open(text) != nullptr);
  CHECK(after.record(text).text_adapter() == AdapterName{"tone"});
  CHECK(after.record(text).adapter_version == 1);
  (void)after.answer<wire::Empty>(
      after.call(kOperator, wire::AdapterRemove{.adapter = AdapterName{"tone"}}));
  CHECK_FALSE(after.record(text).is(LeaseState::Live));
}

TEST_CASE(
    "publish: a broker that died between the words of an adapter and its text ends the text") {
  TextWorld before;
  const LeaseId adapter = before.load();
  const LeaseId text = before.published();
  before.add("tone", "");
  REQUIRE(before.is_live(text));                            // its version is loaded
  before.begin_unit(before.worker, Touches::TenantMemory);  // so the adapter's lease is not fenced
  before.table.restore(adapter, LeaseState::Revoked, RevokeReason::ModelUnloaded);
  World after(before, {});
  CHECK(after.record(adapter).is(LeaseState::Revoked));
  CHECK(after.record(text).is(LeaseState::Revoked));
  CHECK(reason_of(after.record(text).lease) == RevokeReason::ModelUnloaded);
}

TEST_CASE("publish: after any event a text is of the newest version, or its version is loaded") {
  TextWalk walk;
  CAPTURE(testing::test_seed());
  std::size_t most_outdated = 0;
  for (int step = 0; step < 1000; ++step) {
    CAPTURE(step);
    std::map<LeaseId, std::uint32_t> versions;
    for (const LeaseRecord* text : walk.live(wire::LeaseScope::Shared))
      versions.emplace(text->id(), text->adapter_version);
    walk.act();
    std::size_t outdated = 0;
    for (const LeaseRecord* text : walk.live(wire::LeaseScope::Shared)) {
      if (text->adapter_version == walk.newest()) continue;
      REQUIRE(walk.is_loaded(text->adapter_version));
      ++outdated;
    }
    most_outdated = std::max(most_outdated, outdated);
    for (const auto& [lease, version] : versions) {
      const auto record = walk.state.leases.find(lease);
      const bool has_ended = record && !(*record)->is(LeaseState::Live);
      if (has_ended && walk.reason(lease) == RevokeReason::ModelUnloaded)
        REQUIRE(version != walk.newest());
    }
  }
  CHECK(most_outdated > 0);
}

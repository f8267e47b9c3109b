/// A request that moves to another lease goes on with the same bits and without a gap, whatever
/// ends meanwhile, and leaves no block behind.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/property/tight_workload.hpp"
#include "worker/kv/sequence_record.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kMovedTokens = 24;
constexpr BackendUnderTest kEachRow{.threads = 0};  // each row is a unit of its own

std::string long_prompt() {
  return prompts()[0] + " and " + prompts()[5] + " and " + prompts()[3];
}

/// One request of tenant "t", and a bystander of tenant "b" in the same steps.
class MoveScene {
 public:
  explicit MoveScene(BackendUnderTest backend = {}) : rig(with_probe(backend)) {
    old = rig.grant("t");
    bystander = rig.grant("b");
    submit("r", "t", old);
    submit("other", "b", bystander);
  }
  void submit(const std::string& id, const std::string& tenant, LeaseId lease) {
    PromptRequest request = rig.request(tenant, lease, id, rig.encode(long_prompt()), kMovedTokens);
    request.sampling = {.temperature = 1.0f, .seed = 7, .ignore_eos = true};
    REQUIRE(rig.submit(request));
  }
  Result<std::uint32_t> move(LeaseId to, const std::string& id = "r") {
    return rig.engine().move(RequestId{id}, to, rig.clock().now());
  }
  /// Steps until the request has this many tokens.
  void run_to(std::size_t tokens) {
    while (rig.outcome("r").tokens.size() < tokens) REQUIRE(rig.step());
  }
  bool is_all_free(LeaseId lease) const {
    const Tenancy& tenancy = rig.engine().scheduler().tenancies().at(lease);
    return tenancy.running == 0 && tenancy.pool.held_blocks() == tenancy.prefixes.unused();
  }
  void check_text(const std::string& id) {
    CAPTURE(id);
    static std::vector<TokenId> expected;
    if (expected.empty()) {
      MoveScene undisturbed;
      undisturbed.rig.run();
      expected = undisturbed.rig.outcome("r").tokens;
      REQUIRE(expected.size() == kMovedTokens);
    }
    CHECK(rig.outcome(id).tokens == expected);
    for (std::uint32_t i = 0; i < rig.outcome(id).positions.size(); ++i)
      CHECK(rig.outcome(id).positions[i] == i);
  }
  CompletionReason end_of(const std::string& id) { return rig.completion(id).reason; }

 private:
  RigOptions with_probe(BackendUnderTest backend) {
    RigOptions options = backend.options();
    options.probe = &clock;
    return options;
  }

 public:
  UnitClock clock;
  EngineRig rig;
  LeaseId old;
  LeaseId bystander;
};

}  // namespace

TEST_CASE("move: over many leases each step emits the next token, and the text is the same") {
  MoveScene scene{BackendUnderTest{GENERATE(from_range(with_cuda({0, 2})))}};
  int steps = 0;
  std::uint32_t moves = 0;
  while (scene.rig.engine().scheduler().has_work()) {
    const std::size_t before = scene.rig.outcome("r").tokens.size();
    const bool has_decoded = before > 0;
    if (scene.rig.sequence("r") != nullptr) {
      const LeaseId fresh = scene.rig.grant("t");
      REQUIRE(scene.move(fresh));
      CHECK(scene.is_all_free(scene.old));
      scene.rig.drop(std::exchange(scene.old, fresh));
      ++moves;
    }
    const Result<StepReport> report = scene.rig.step();
    REQUIRE(report);
    if (has_decoded) CHECK(scene.rig.outcome("r").tokens.size() == before + 1);  // no gap
    ++steps;
  }
  CHECK(moves > 20);
  CHECK(scene.rig.outcome("r").rebounds.size() == moves);
  CHECK(scene.rig.outcome("r").rebounds[0].move_duration);
  scene.check_text("r");
  scene.check_text("other");
  CHECK(scene.end_of("r") == CompletionReason::MaxTokensReached);
  CHECK_FALSE(scene.rig.backend().fault());
}

TEST_CASE("move: no row is computed again, and the record in the new lease is whole") {
  MoveScene still;
  still.rig.run();
  MoveScene scene;
  scene.run_to(5);
  const LeaseId fresh = scene.rig.grant("t");
  const auto copied = scene.move(fresh);
  REQUIRE(copied);
  CHECK(*copied == scene.rig.sequence("r")->blocks.committed_blocks());
  REQUIRE(scene.rig.step());
  const Sequence& sequence = *scene.rig.sequence("r");
  const auto bytes = scene.rig.bytes_of(fresh, sequence.blocks.record_blocks());
  const Result<SequenceRecord> record = read_record(bytes, {scene.rig.config().n_context});
  REQUIRE(record);
  CHECK(record->tokens == sequence.tokens);
  CHECK(std::ranges::equal(record->blocks, sequence.blocks.blocks_of(record->committed)));
  scene.rig.run();
  CHECK(scene.clock.units(LaunchSite::Embedding) == still.clock.units(LaunchSite::Embedding));
  scene.check_text("r");
}

TEST_CASE("move: the record of a request that ended is cleared before its blocks are copied to") {
  MoveScene scene;
  scene.run_to(3);
  const LeaseId fresh = scene.rig.grant("t");
  scene.submit("x", "t", fresh);
  while (scene.rig.outcome("x").tokens.empty()) REQUIRE(scene.rig.step());
  const auto blocks_of = [&] {
    const Sequence& sequence = *scene.rig.sequence("r");
    const auto full = sequence.blocks.committed() / KvLayout::kBlockTokens;
    return std::vector(sequence.blocks.blocks().begin(), sequence.blocks.blocks().begin() + full);
  };
  const auto before = scene.rig.bytes_of(scene.old, blocks_of());
  REQUIRE_FALSE(before.empty());

  REQUIRE(scene.rig.engine().cancel(RequestId{"x"}));
  REQUIRE(scene.move(fresh));
  REQUIRE(scene.rig.step());
  auto after = scene.rig.bytes_of(fresh, blocks_of());
  after.resize(before.size());
  CHECK(after == before);
  scene.rig.run();
  scene.check_text("r");
}

TEST_CASE("move: what the old lease has cached stays there, and the new one caches the text") {
  MoveScene scene;
  scene.run_to(3);
  const LeaseId fresh = scene.rig.grant("t");
  REQUIRE(scene.move(fresh));
  const auto cached = [&](LeaseId lease) {
    return scene.rig.engine().scheduler().tenancies().at(lease).prefixes.entries().size();
  };
  CHECK(cached(scene.old) > 0);
  CHECK(cached(fresh) == 0);
  REQUIRE(scene.rig.step());
  CHECK(cached(fresh) == cached(scene.old));
  scene.rig.run();
  scene.check_text("r");
}

TEST_CASE("move: the old lease revoked during the copy ends the request with Revoked") {
  MoveScene scene{kEachRow};
  scene.run_to(3);
  const LeaseId fresh = scene.rig.grant("t");
  scene.clock.act_at_copy(0, [&] { scene.rig.revoke(scene.old); });
  const auto moved = scene.move(fresh);
  REQUIRE_FALSE(moved);
  CHECK(moved.error().code == Errc::LeaseRevoked);
  CHECK(scene.is_all_free(fresh));
  scene.rig.run();
  CHECK(scene.end_of("r") == CompletionReason::Revoked);
  CHECK(scene.rig.completion("r").revocation->lease == scene.old);
  CHECK(scene.rig.outcome("r").tokens.size() == 3);
  scene.check_text("other");
}

TEST_CASE("move: the new lease revoked during the copy leaves the request where it is") {
  MoveScene scene{kEachRow};
  scene.run_to(3);
  const LeaseId fresh = scene.rig.grant("t");
  scene.clock.act_at_copy(1, [&] { scene.rig.revoke(fresh); });
  const auto moved = scene.move(fresh);
  REQUIRE_FALSE(moved);
  CHECK(moved.error().code == Errc::LeaseRevoked);
  CHECK(scene.is_all_free(fresh));
  scene.rig.drop(fresh);
  scene.rig.run();
  scene.check_text("r");
  CHECK(scene.rig.outcome("r").rebounds.empty());
}

TEST_CASE("move: a request that is cancelled during the copy ends, and holds no block") {
  MoveScene scene{kEachRow};
  scene.run_to(3);
  const LeaseId fresh = scene.rig.grant("t");
  scene.clock.act_at_copy(
      0, [&] { scene.rig.running_requests().stop(RequestId{"r"}, LocalStop::Cancelled); });
  REQUIRE_FALSE(scene.move(fresh));
  scene.rig.run();
  CHECK(scene.end_of("r") == CompletionReason::Cancelled);
  CHECK(scene.is_all_free(fresh));
  CHECK(scene.is_all_free(scene.old));
}

TEST_CASE("move: a request that moved outlives its old lease and ends with its new one") {
  MoveScene scene;
  scene.run_to(3);
  const LeaseId fresh = scene.rig.grant("t");
  REQUIRE(scene.move(fresh));
  scene.rig.revoke(scene.old);
  scene.run_to(6);
  scene.rig.revoke(fresh);
  scene.rig.run();
  CHECK(scene.end_of("r") == CompletionReason::Revoked);
  CHECK(scene.rig.completion("r").revocation->lease == fresh);
}

TEST_CASE("move: refusals change nothing") {
  MoveScene scene;
  scene.run_to(3);
  const LeaseId fresh = scene.rig.grant("t");
  const auto refusal = [&](LeaseId to, const std::string& id = "r") {
    const auto moved = scene.move(to, id);
    REQUIRE_FALSE(moved);
    return moved.error().code;
  };
  CHECK(refusal(fresh, "unknown") == Errc::UnknownRequest);
  CHECK(refusal(scene.old) == Errc::BadRequest);
  CHECK(refusal(scene.bystander) == Errc::LeaseFenced);  // another tenant's
  const LeaseId draining = scene.rig.grant("t");
  scene.rig.set_drain_deadline(draining, scene.rig.clock().now() + std::chrono::seconds(9));
  CHECK(refusal(draining) == Errc::Draining);
  scene.rig.revoke(draining);
  CHECK(refusal(draining) == Errc::LeaseRevoked);
  scene.rig.fence(draining);
  CHECK(refusal(draining) == Errc::LeaseFenced);
  // While the source drains the request may leave.
  scene.rig.set_drain_deadline(scene.old, scene.rig.clock().now() + std::chrono::seconds(9));
  REQUIRE(scene.move(fresh));
  scene.rig.run();
  scene.check_text("r");
  scene.check_text("other");
}

TEST_CASE("move: a tenant's copies take at most a twentieth of the time, and all a fifth") {
  MoveScene scene{kEachRow};
  scene.run_to(3);
  scene.clock.drive(scene.rig.clock());  // each unit takes a microsecond
  const LeaseId fresh = scene.rig.grant("t");
  const int units = scene.clock.units(LaunchSite::BlockCopy);
  REQUIRE(scene.move(fresh));
  const auto took = std::chrono::microseconds(scene.clock.units(LaunchSite::BlockCopy) - units);
  REQUIRE(took.count() > 1);
  const auto early = scene.move(scene.old);
  REQUIRE_FALSE(early);
  CHECK(early.error().code == Errc::QueueFull);
  CHECK(early.error().retry_after_ms == 1);
  const LeaseId of_other = scene.rig.grant("b");
  const auto other_early = scene.move(of_other, "other");
  REQUIRE_FALSE(other_early);
  CHECK(other_early.error().code == Errc::QueueFull);
  scene.rig.clock().advance(4 * took);
  CHECK(scene.move(of_other, "other"));
  CHECK_FALSE(scene.move(scene.old));
  scene.rig.clock().advance(20 * took);
  CHECK(scene.move(scene.old));
  scene.rig.run();
  scene.check_text("r");
}

TEST_CASE("move: without room in the new lease the broker is asked, and the request goes on") {
  TightRig rig(TightRig::blocks(2, 2));
  const LeaseId old = rig.grant("t");
  const LeaseId full = rig.grant("t");
  const TightKind& kind = tight_kinds()[0];
  REQUIRE(rig.submit(rig.request_of(kind, "t", old, "r")));
  REQUIRE(rig.submit(rig.request_of(kind, "t", full, "a")));
  REQUIRE(rig.submit(rig.request_of(kind, "t", full, "b")));
  for (int i = 0; i < 3; ++i) rig.step_without_growth();
  const auto moved = rig.engine().move(RequestId{"r"}, full, rig.clock().now());
  REQUIRE_FALSE(moved);
  CHECK(moved.error().code == Errc::PoolExhausted);
  const auto wanted = rig.engine().take_growth_requests();
  CHECK(std::ranges::any_of(wanted,
                            [&](const GrowthRequest& growth) { return growth.lease == full; }));
  rig.grow(full);
  CHECK(rig.engine().move(RequestId{"r"}, full, rig.clock().now()));
}

TEST_CASE("move: a reader of a published text takes its borrowed blocks along") {
  EngineRig rig;
  const std::vector<TokenId> text = rig.encode(long_prompt());
  const LeaseId shared = rig.publish(text);
  const auto ask = [&](const std::string& id, LeaseId lease) {
    REQUIRE(rig.submit(rig.request("t", lease, id, text, kMovedTokens)));
  };
  const LeaseId old = rig.grant("t");
  ask("still", old);
  rig.run();
  ask("r", old);
  REQUIRE(rig.step());
  REQUIRE(rig.sequence("r")->shared_lease == shared);
  const LeaseId fresh = rig.grant("t");
  const auto copied = rig.engine().move(RequestId{"r"}, fresh, rig.clock().now());
  REQUIRE(copied);
  CHECK(*copied == rig.sequence("r")->blocks.committed_blocks() -
                       rig.sequence("r")->blocks.published_blocks());
  rig.drop(old);
  REQUIRE(rig.step());
  const bool ends = GENERATE(true, false);
  if (ends) rig.revoke(shared);
  rig.run();
  REQUIRE(rig.outcome("r").completions.size() == 1);
  if (ends) {
    CHECK(rig.completion("r").revocation->lease == shared);
  } else {
    CHECK(rig.outcome("r").tokens == rig.outcome("still").tokens);
  }
}

}  // namespace leasehold::testing

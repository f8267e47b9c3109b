/// Blocks that are copied to swap and back hold the same bits, whatever ends or fails meanwhile.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/property/damaged_model.hpp"
#include "tests/property/tight_workload.hpp"
#include "tests/support/test_seed.hpp"
#include "worker/kv/sequence_record.hpp"

namespace leasehold::testing {
namespace {

constexpr BackendUnderTest kReference{.threads = 0};  // each row is a unit of its own

/// The reference backend, and a card launch by launch: no graph holds a copy.
const std::vector<std::uint32_t> kCopying = [] {
  std::vector<std::uint32_t> some = with_cuda({kReference.threads});
  std::erase(some, BackendUnderTest::kCudaGraphs);
  return some;
}();

/// Two requests of tenant "a" in a pool that holds one of them, with swap, and one of tenant "b".
class SwapScene {
 public:
  explicit SwapScene(BackendUnderTest backend = kReference)
      : backend_(backend), rig(TightRig::blocks(4, 2), bundled_model_path(), &clock, backend) {
    clock.drive(rig.clock(), backend.is_cuda() ? row_time() : UnitClock::RowTime());
    a = rig.grant("a");
    b = rig.grant("b");
    rig.grow(a, 1, wire::MemoryPool::Swap);
    submit("older", "a", a);
    submit("bystander", "b", b);
    for (int i = 0; i < 3; ++i) rig.step_without_growth();  // decodes, so that a step is measured
    submit("younger", "a", a);
  }

  /// Runs all steps. A failed one is repeated with the weights restored.
  void run(const std::function<void()>& after_step = {}) {
    for (int i = 0; i < 2'000 && rig.engine().scheduler().has_work(); ++i) {
      for (const GrowthRequest& growth : rig.engine().take_growth_requests())
        rig.engine().deny_growth(growth);
      const Result<StepReport> report = rig.step();
      if (!report) {
        ++failed_steps;
        REQUIRE(rig.restore_weights() > 0);
      }
      if (after_step) after_step();
    }
    REQUIRE_FALSE(rig.engine().scheduler().has_work());
  }

  /// What the request gets alone.
  struct Alone {
    std::vector<TokenId> tokens;
    Run logits;
    int rows = 0;  ///< Embedding units: one for each row that it computes.
  };
  const Alone& alone(const std::string& id) const {
    // Equal for all scenes of a backend.
    static std::map<std::pair<std::uint32_t, std::string>, Alone> known;
    const auto [found, is_new] = known.try_emplace({backend_.threads, id});
    Alone& alone = found->second;
    if (!is_new) return alone;
    UnitClock count;
    TightRig calm(100, bundled_model_path(), &count, backend_);
    const TightKind& kind = tight_kinds()[kinds_.at(id)];
    REQUIRE(calm.submit(calm.request_of(kind, "t", calm.grant("t"), id)));
    while (calm.engine().scheduler().has_work()) {
      REQUIRE(calm.step());
      append_last_logits(calm, id, alone.logits);
    }
    alone.tokens = calm.outcome(id).tokens;
    alone.rows = count.units(LaunchSite::Embedding);
    return alone;
  }
  void check_as_alone(const std::string& id) {
    CAPTURE(id);
    CHECK(rig.outcome(id).completions.size() == 1);
    CHECK(rig.outcome(id).tokens == alone(id).tokens);
  }
  void check_ended(const std::string& id, CompletionReason reason) {
    CAPTURE(id);
    CHECK(rig.completion(id).reason == reason);
  }
  bool is_all_free(LeaseId lease) const {
    const Tenancy& tenancy = rig.engine().scheduler().tenancies().at(lease);
    return tenancy.swap.held_blocks() == 0 &&
           tenancy.pool.held_blocks() == tenancy.prefixes.unused();
  }
  std::vector<std::byte> swap_block(std::uint32_t index) {
    const ExtentId swap_extent = rig.extents(a).rbegin()->first;
    const std::array block{BlockId{swap_extent, index}};
    return rig.bytes_of(a, block);
  }

 private:
  BackendUnderTest backend_;
  std::map<std::string, std::size_t> kinds_{{"older", 0}, {"younger", 1}, {"bystander", 2}};

  UnitClock::RowTime row_time() {
    return [this] {
      Duration rows{};
      for (const auto& sequence : rig.engine().scheduler().running().all())
        rows += std::chrono::microseconds(100) * sequence->pending();
      return rows;
    };
  }
  void submit(const std::string& id, const std::string& tenant, LeaseId lease) {
    REQUIRE(rig.submit(rig.request_of(tight_kinds()[kinds_.at(id)], tenant, lease, id)));
  }

 public:
  UnitClock clock;
  TightRig rig;
  LeaseId a;
  LeaseId b;
  int failed_steps = 0;
};

bool is_zero(const std::vector<std::byte>& bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

TEST_CASE("swap: an embedding that was swapped out keeps what it has pooled") {
  const auto embed = [](EngineRig& rig, LeaseId lease) {
    std::vector<TokenId> text(46, rig.encode("Lily").back());  // three blocks
    for (std::size_t i = 0; i < text.size(); i += 2) text[i] = rig.encode("cat").back();
    PromptRequest request = rig.request("a", lease, "e", text, 0);
    request.embedding = EmbeddingRequest{.pooling = Pooling::Mean};
    REQUIRE(rig.submit(request));
  };
  EngineRig calm;
  embed(calm, calm.grant("a"));
  calm.run();
  UnitClock clock;
  TightRig rig(TightRig::blocks(4, 2), bundled_model_path(), &clock, kReference);
  clock.drive(rig.clock(), UnitClock::RowTime());
  const LeaseId lease = rig.grant("a");
  rig.grow(lease, 1, wire::MemoryPool::Swap);
  REQUIRE(rig.submit(rig.request("a", lease, "older", rig.encode("Once upon a time"), 40)));
  rig.step_without_growth();
  // Decodes, so that a step is measured, up to the end of its block.
  while (rig.sequence("older")->tokens.size() < 16) rig.step_without_growth();
  embed(rig, lease);
  while (rig.engine().scheduler().has_work()) rig.step_without_growth();
  REQUIRE(rig.outcome("e").preemptions.size() == 1);
  CHECK(rig.outcome("e").preemptions[0].swapped_blocks > 0);
  CHECK(rig.completion("e").embedding == calm.completion("e").embedding);
}

TEST_CASE("swap: random requests in a tiny pool with swap get the tokens that they get alone") {
  const std::uint64_t seed = test_seed(5);
  CAPTURE(seed);
  const std::string model = model_with_nan_embedding(kPoisonedTight);
  TightWorkload workload(seed, model, tight_answers_alone(model), /*lends_swap=*/true);
  std::filesystem::remove(model);
  for (int i = 0; i < 4'500; ++i) workload.operate();
  workload.finish();
  // Or the workload proves nothing.
  CHECK(workload.completed > 100);
  CHECK(workload.completed_swapped > 40);
  CHECK(workload.faults > 5);
  CHECK(workload.swapped > 100);
  CHECK(workload.preempted - workload.swapped > 20);
  CHECK(workload.cancelled_swapped > 3);
  CHECK(workload.revoked_swapped > 3);
  CHECK(workload.reclaimed_swap > 3);
  CHECK(workload.preempted_kinds.size() >= 5);
}

TEST_CASE("swap: a request that comes back computes no row again, and has the bits it has alone") {
  SwapScene scene;
  Run got;
  int records = 0;
  scene.run([&] {
    append_last_logits(scene.rig, "younger", got);
    const Sequence* sequence = scene.rig.sequence("younger");
    if (sequence == nullptr || scene.rig.outcome("younger").preemptions.empty()) return;
    const auto bytes = scene.rig.bytes_of(scene.a, sequence->blocks.record_blocks());
    const Result<SequenceRecord> record = read_record(bytes, scene.rig.config().n_context);
    REQUIRE(record);
    REQUIRE(record->tokens == sequence->tokens);
    REQUIRE(std::ranges::equal(record->blocks, sequence->blocks.blocks_of(record->committed)));
    ++records;
  });
  REQUIRE_FALSE(scene.rig.outcome("younger").preemptions.empty());
  for (const Preempted& each : scene.rig.outcome("younger").preemptions)
    CHECK(each.swapped_blocks > 0);
  CHECK(records > 3);
  const int rows =
      scene.alone("older").rows + scene.alone("younger").rows + scene.alone("bystander").rows;
  CHECK(scene.clock.units(LaunchSite::Embedding) == rows);
  CHECK(same_bits(got, scene.alone("younger").logits));
  for (const char* id : {"older", "younger", "bystander"}) scene.check_as_alone(id);
  CHECK(scene.is_all_free(scene.a));
}

TEST_CASE("swap: a request that comes back has the bits it has alone, with every way to launch") {
  const BackendUnderTest backend{GENERATE(from_range(with_cuda({2})))};
  CAPTURE(backend);
  SwapScene scene(backend);
  Run got;
  scene.run([&] { append_last_logits(scene.rig, "younger", got); });
  REQUIRE_FALSE(scene.rig.outcome("younger").preemptions.empty());
  CHECK(scene.rig.outcome("younger").preemptions.at(0).swapped_blocks > 0);
  CHECK(scene.clock.units(LaunchSite::BlockCopy) > 1);
  CHECK(same_bits(got, scene.alone("younger").logits));
  for (const char* id : {"older", "younger", "bystander"}) scene.check_as_alone(id);
  CHECK(scene.is_all_free(scene.a));
  CHECK_FALSE(scene.rig.backend().fault());
}

TEST_CASE("swap: a revocation during a copy ends that lease's requests within one unit") {
  SwapScene scene(BackendUnderTest{GENERATE(from_range(kCopying))});
  scene.clock.act_at_copy(0, [&] { scene.rig.revoke(scene.a); });
  scene.run();
  scene.check_ended("older", CompletionReason::Revoked);
  scene.check_ended("younger", CompletionReason::Revoked);
  CHECK(scene.rig.early_completions() == std::vector{true, true});
  CHECK_FALSE(is_zero(scene.swap_block(0)));  // the unit had polled before
  CHECK(scene.clock.units(LaunchSite::BlockCopy) > 1);
  CHECK(is_zero(scene.swap_block(1)));
  scene.check_as_alone("bystander");
  scene.rig.drop(scene.a);
  CHECK(scene.is_all_free(scene.b));
}

TEST_CASE("swap: a revocation or a stop of another sequence during a copy disturbs no copy") {
  SwapScene scene(BackendUnderTest{GENERATE(from_range(kCopying))});
  const bool revokes = GENERATE(true, false);
  scene.clock.act_at_copy(0, [&] {
    if (revokes) return scene.rig.revoke(scene.b);
    scene.rig.running_requests().stop(RequestId{"older"}, LocalStop::Cancelled);
  });
  scene.run();
  if (revokes) {
    scene.check_ended("bystander", CompletionReason::Revoked);
    scene.check_as_alone("older");
  } else {
    scene.check_ended("older", CompletionReason::Cancelled);
    scene.check_as_alone("bystander");
  }
  CHECK(scene.rig.early_completions() == std::vector{true});
  CHECK(scene.rig.outcome("younger").preemptions.at(0).swapped_blocks > 0);
  scene.check_as_alone("younger");
  CHECK(scene.is_all_free(scene.a));
}

TEST_CASE("swap: a copy that a revoked part of the weights interrupts is made again") {
  SwapScene scene(BackendUnderTest{GENERATE(from_range(kCopying))});
  const int at = GENERATE(0, 2);  // while blocks go out, and while they come back
  scene.clock.act_at_copy(at, [&] { scene.rig.revoke(scene.rig.engine_lease()); });
  scene.run();
  CHECK(scene.failed_steps > 0);
  CHECK(scene.rig.outcome("younger").preemptions.at(0).swapped_blocks > 0);
  for (const char* id : {"older", "younger", "bystander"}) scene.check_as_alone(id);
  CHECK(scene.is_all_free(scene.a));
}

}  // namespace leasehold::testing

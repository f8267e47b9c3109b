/// Models with recurrent layers: a text has the same tokens whatever happens to its state, which is
/// leased memory like its keys and values.
#include <catch2/catch.hpp>
#include <utility>

#include "kernels/model/capacity_plan.hpp"
#include "tests/property/tight_workload.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/unit_watch.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kHybridTokens = 40;

/// Room for the texts of this file, several times.
constexpr std::uint32_t kAmple = 400;

/// A model, and its sizes in blocks, for leases that hold an exact number of requests.
struct HybridModel {
  explicit HybridModel(std::string file, Arithmetic how = Arithmetic::F32)
      : path(std::move(file)), arithmetic(how) {
    EngineRig rig({.model_path = path});
    block_bytes = rig.engine().kv_block_size_bytes();
    const SchedulerLimits& limits = rig.engine().scheduler().fit().limits();
    fixed = limits.record_blocks + kStateCopies * limits.state_blocks;
    state = limits.state_blocks;
    n_vocab = static_cast<TokenId>(rig.config().n_vocab);
  }
  std::string path;
  Arithmetic arithmetic;
  std::uint64_t block_bytes = 0;
  std::uint32_t fixed = 0;  // of a request
  std::uint32_t state = 0;  // of a copy
  TokenId n_vocab = 0;
  bool drafts = false;  // it is also its own draft model
};
const HybridModel& tiny_qwen35() {
  static const HybridModel kModel(test_data_path("models-2026/tiny-qwen35-f32.gguf"));
  return kModel;
}

RigOptions hybrid_options(std::uint32_t blocks, std::uint32_t token_budget = 256,
                          const HybridModel& model = tiny_qwen35()) {
  RigOptions options{.model_path = model.path,
                     .arithmetic = model.arithmetic,
                     .extent_bytes = blocks * model.block_bytes};
  options.limits.token_budget = token_budget;
  if (model.drafts) {
    options.draft_path = model.path;
    options.limits.speculate = 3;
    options.limits.max_batch_size = 8;
  }
  return options;
}

std::vector<TokenId> hybrid_prompt(std::uint64_t seed, std::uint32_t count,
                                   const HybridModel& model = tiny_qwen35()) {
  std::vector<TokenId> tokens;
  for (std::uint32_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(random_at(seed, i) % (model.n_vocab - 8) + 4));
  return tokens;
}

PromptRequest hybrid_request(const EngineRig& rig, LeaseId lease, const std::string& id,
                             std::vector<TokenId> prompt, const std::string& tenant = "t") {
  PromptRequest request = rig.request(tenant, lease, id, std::move(prompt), kHybridTokens);
  request.sampling = {.temperature = 1.0f, .seed = 5, .ignore_eos = true};
  return request;
}

/// The tokens of a prompt that runs alone, in steps of one row, without a draft model.
std::vector<TokenId> alone(const std::vector<TokenId>& prompt, HybridModel model = tiny_qwen35()) {
  model.drafts = false;
  EngineRig rig(hybrid_options(kAmple, 1, model));
  REQUIRE(rig.submit(hybrid_request(rig, rig.grant("t"), "r", prompt)));
  rig.run();
  REQUIRE(rig.outcome("r").tokens.size() == kHybridTokens);
  return rig.outcome("r").tokens;
}

void run_to(EngineRig& rig, const std::string& id, std::size_t tokens) {
  while (rig.outcome(id).tokens.size() < tokens) REQUIRE(rig.step());
}

std::vector<BlockId> state_blocks(const EngineRig& rig, const std::string& id) {
  const auto blocks = rig.sequence(id)->blocks.recurrent().blocks();
  return {blocks.begin(), blocks.end()};
}

bool is_all_free(const EngineRig& rig, LeaseId lease) {
  const Tenancy& tenancy = rig.engine().scheduler().tenancies().at(lease);
  return tenancy.swap.held_blocks() == 0 && tenancy.pool.held_blocks() == tenancy.prefixes.unused();
}

}  // namespace

TEST_CASE("recurrent: a text is the same in any batch and any chunks") {
  const std::uint32_t budget = GENERATE(3u, 16u, 40u, 256u);
  const std::uint32_t threads = GENERATE(1u, 2u);
  RigOptions options = hybrid_options(kAmple, budget);
  options.threads = threads;
  EngineRig rig(options);
  const LeaseId lease = rig.grant("t");
  for (std::uint32_t i = 0; i < 4; ++i) {
    REQUIRE(rig.submit(
        hybrid_request(rig, lease, "r" + std::to_string(i), hybrid_prompt(i, 20 + 17 * i))));
    for (int step = 0; step < 3; ++step) REQUIRE(rig.step());
  }
  rig.run();
  for (std::uint32_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(rig.outcome("r" + std::to_string(i)).tokens == alone(hybrid_prompt(i, 20 + 17 * i)));
  }
  CHECK(is_all_free(rig, lease));
}

namespace {

/// Two texts of a lease that has room for one: the younger one is preempted.
void check_preempted(const HybridModel& model, bool swaps) {
  UnitClock clock;
  RigOptions options = hybrid_options(5 + 2 * model.fixed, 256, model);  // two of two blocks
  options.probe = &clock;
  options.swap_extent_bytes = (3 + model.state) * model.block_bytes;
  EngineRig rig(options);
  clock.drive(rig.clock(), [&rig] {  // a row costs more than a copy
    Duration rows{};
    for (const auto& sequence : rig.engine().scheduler().running().all())
      rows += std::chrono::milliseconds(1) * sequence->pending();
    return rows;
  });
  const LeaseId lease = rig.grant("t");
  if (swaps) rig.grow(lease, 1, wire::MemoryPool::Swap);
  const auto older = hybrid_prompt(1, 20, model);
  const auto younger = hybrid_prompt(2, 20, model);
  REQUIRE(rig.submit(hybrid_request(rig, lease, "older", older)));
  for (int i = 0; i < 3; ++i) REQUIRE(rig.step());
  REQUIRE(rig.submit(hybrid_request(rig, lease, "younger", younger)));
  for (int i = 0; i < 2'000 && rig.engine().scheduler().has_work(); ++i) {
    for (const GrowthRequest& growth : rig.engine().take_growth_requests())
      rig.engine().deny_growth(growth);
    REQUIRE(rig.step());
  }
  REQUIRE_FALSE(rig.outcome("younger").preemptions.empty());
  const std::uint32_t swapped = rig.outcome("younger").preemptions[0].swapped_blocks;
  CHECK((swapped > model.state) == swaps);
  CHECK(rig.outcome("older").tokens == alone(older, model));
  CHECK(rig.outcome("younger").tokens == alone(younger, model));
  CHECK(is_all_free(rig, lease));
}

/// A text that moves, is adopted and is computed again, and the next question of its conversation.
void check_journey(const HybridModel& model) {
  EngineRig rig(hybrid_options(kAmple, 11, model));
  const std::vector<TokenId> prompt = hybrid_prompt(3, 37, model);
  PromptRequest request = hybrid_request(rig, rig.grant("t"), "t/r", prompt);
  const auto rebind = [&](LeaseId to) {
    request.emitted = rig.outcome("t/r").tokens;
    request.rebound_from = request.lease;
    request.lease = to;
    REQUIRE(rig.submit(request));
  };
  REQUIRE(rig.submit(request));
  run_to(rig, "t/r", 5);
  const LeaseId moved = rig.grant("t");
  REQUIRE(rig.engine().move(RequestId{"t/r"}, moved, rig.clock().now()));
  rig.drop(std::exchange(request.lease, moved));
  run_to(rig, "t/r", 14);
  const auto [fresh, adopted] = rig.adopt(moved, "t");
  CHECK(adopted.records == 1);
  rebind(fresh);
  run_to(rig, "t/r", 22);
  rig.revoke(fresh);
  REQUIRE(rig.step());
  rebind(rig.grant("t"));
  rig.run();
  const std::vector<TokenId> expected = alone(prompt, model);
  CHECK(rig.outcome("t/r").tokens == expected);
  std::vector<TokenId> next = prompt;
  next.insert(next.end(), expected.begin(), expected.end());
  next.insert(next.end(), prompt.begin(), prompt.begin() + 5);
  REQUIRE(rig.submit(hybrid_request(rig, request.lease, "next", next)));
  rig.run();
  CHECK(rig.outcome("next").tokens == alone(next, model));
  if (!model.drafts)  // a step with a wrong proposal keeps nothing
    CHECK(rig.outcome("next").completions.at(0).cached_tokens == prompt.size() + kHybridTokens - 1);
  CHECK(is_all_free(rig, request.lease));
}

}  // namespace

TEST_CASE("recurrent: a preempted text is the same, swapped or computed again") {
  check_preempted(tiny_qwen35(), GENERATE(true, false));
}

TEST_CASE("recurrent: a text of any family is the same whatever happens to its state") {
  const Family family =
      GENERATE(from_range(std::begin(kRecurrentFamilies), std::end(kRecurrentFamilies)));
  const Arithmetic arithmetic = GENERATE(Arithmetic::F32, Arithmetic::Int8);
  CAPTURE(family.name, name(arithmetic));
  const GeneratedModel file(family);
  const HybridModel model(file.path(), arithmetic);
  check_journey(model);
  check_preempted(model, true);
  check_preempted(model, false);
}

TEST_CASE(
    "recurrent: a draft model changes no text that is moved, adopted, swapped or computed again") {
  HybridModel model = tiny_qwen35();
  model.drafts = true;
  check_journey(model);
  check_preempted(model, true);
  check_preempted(model, false);
}

TEST_CASE("recurrent: a text that moves to another lease takes its state with it") {
  EngineRig rig(hybrid_options(kAmple));
  LeaseId lease = rig.grant("t");
  const std::vector<TokenId> prompt = hybrid_prompt(3, 37);
  REQUIRE(rig.submit(hybrid_request(rig, lease, "r", prompt)));
  for (const std::size_t tokens : {1u, 7u, 8u}) {
    run_to(rig, "r", tokens);
    const LeaseId to = rig.grant("t");
    REQUIRE(rig.engine().move(RequestId{"r"}, to, rig.clock().now()));
    rig.drop(lease);
    lease = to;
  }
  rig.run();
  CHECK(rig.outcome("r").tokens == alone(prompt));
  CHECK(is_all_free(rig, lease));
}

TEST_CASE("recurrent: a text goes on from an adopted state, and no position is computed again") {
  const std::uint32_t tokens = GENERATE(1u, 2u, 13u, 14u);  // 13: the positions fill a block
  EngineRig rig(hybrid_options(kAmple));
  const LeaseId old = rig.grant("t");
  const std::vector<TokenId> prompt = hybrid_prompt(4, 20);
  PromptRequest request = hybrid_request(rig, old, "t/r", prompt);
  REQUIRE(rig.submit(request));
  run_to(rig, "t/r", tokens);
  const auto [fresh, adopted] = rig.adopt(old, "t");
  CHECK(adopted.records == 1);
  CHECK(adopted.dropped.empty());
  request.emitted = rig.outcome("t/r").tokens;
  request.rebound_from = old;
  request.lease = fresh;
  REQUIRE(rig.submit(request));
  rig.run();
  CHECK(rig.outcome("t/r").tokens == alone(prompt));
  const Tenancy& tenancy = rig.engine().scheduler().tenancies().at(fresh);
  CHECK(tenancy.served_tokens == kHybridTokens - tokens);
}

TEST_CASE("recurrent: a text whose last tokens did not arrive is computed again, and is the same") {
  EngineRig rig(hybrid_options(kAmple));
  const LeaseId old = rig.grant("t");
  const std::vector<TokenId> prompt = hybrid_prompt(5, 20);
  PromptRequest request = hybrid_request(rig, old, "t/r", prompt);
  REQUIRE(rig.submit(request));
  run_to(rig, "t/r", 17);
  const auto [fresh, adopted] = rig.adopt(old, "t");
  std::vector<TokenId>& arrived = rig.outcome("t/r").tokens;
  arrived.resize(15);
  request.emitted = arrived;
  request.rebound_from = old;
  request.lease = fresh;
  REQUIRE(rig.submit(request));
  rig.run();
  CHECK(arrived == alone(prompt));
}

TEST_CASE("recurrent: the next question of a conversation computes only what is new") {
  EngineRig rig(hybrid_options(kAmple));
  const LeaseId lease = rig.grant("t");
  std::vector<TokenId> conversation = hybrid_prompt(6, 25);
  for (int turn = 0; turn < 3; ++turn) {
    const std::string id = "turn" + std::to_string(turn);
    REQUIRE(rig.submit(hybrid_request(rig, lease, id, conversation)));
    const std::size_t known = conversation.size();
    rig.run();
    const RequestOutcome& outcome = rig.outcome(id);
    CHECK(outcome.tokens == alone(conversation));
    CHECK(outcome.completions.at(0).cached_tokens == (turn == 0 ? 0 : known - 9));
    conversation.insert(conversation.end(), outcome.tokens.begin(), outcome.tokens.end());
    const std::vector<TokenId> question = hybrid_prompt(70 + turn, 8);
    conversation.insert(conversation.end(), question.begin(), question.end());
  }
}

TEST_CASE("recurrent: texts with the same beginning start at its last snapshot") {
  constexpr std::uint32_t kAt = kSnapshotPositions;
  EngineRig rig(hybrid_options(kAmple));
  const LeaseId lease = rig.grant("t");
  const std::vector<TokenId> beginning = hybrid_prompt(8, kAt + 20);
  for (const std::uint64_t seed : {81u, 82u, 83u}) {
    const std::string id = "r" + std::to_string(seed);
    std::vector<TokenId> prompt = beginning;
    const std::vector<TokenId> rest = hybrid_prompt(seed, 9);
    prompt.insert(prompt.end(), rest.begin(), rest.end());
    REQUIRE(rig.submit(hybrid_request(rig, lease, id, prompt)));
    rig.run();
    CHECK(rig.outcome(id).tokens == alone(prompt));
    CHECK(rig.outcome(id).completions.at(0).cached_tokens == (seed == 81 ? 0 : kAt));
  }
}

namespace {

/// A text and a bystander of another tenant, before a step in which both decode.
struct RevokedScene {
  RevokedScene() : rig(with_probe()) {
    REQUIRE(rig.submit(hybrid_request(rig, lease, "r", hybrid_prompt(9, 20))));
    REQUIRE(rig.submit(hybrid_request(rig, other, "o", hybrid_prompt(10, 20), "o")));
    run_to(rig, "r", 3);
    blocks = state_blocks(rig, "r");
  }
  RigOptions with_probe() {
    RigOptions options = hybrid_options(kAmple);
    options.probe = &watch;
    return options;
  }
  std::vector<std::byte> state() { return rig.bytes_of(lease, blocks); }

  UnitWatch watch;
  EngineRig rig;
  LeaseId lease = rig.grant("t");
  LeaseId other = rig.grant("o");
  std::vector<BlockId> blocks;
};

}  // namespace

TEST_CASE("recurrent: the state of a revoked text is not written after the unit that is running") {
  RevokedScene whole;
  whole.watch.start();
  REQUIRE(whole.rig.step());
  const std::size_t units = whole.watch.units().size();
  REQUIRE(units > 20);
  for (std::size_t at = 0; at + 1 < units; at += 1 + units / 17) {
    CAPTURE(at, units);
    RevokedScene scene;
    REQUIRE(scene.blocks.size() == kStateCopies * tiny_qwen35().state);
    std::vector<std::byte> seen;
    scene.watch.start(at, [&] {
      scene.rig.revoke(scene.lease);
      scene.watch.act_again(at + 1, [&] { seen = scene.state(); });
    });
    REQUIRE(scene.rig.step());
    scene.watch.stop();
    REQUIRE_FALSE(seen.empty());
    CHECK(scene.state() == seen);
    CHECK(scene.rig.completion("r").reason == CompletionReason::Revoked);
    scene.rig.run();
    CHECK(scene.rig.outcome("o").tokens == alone(hybrid_prompt(10, 20)));
  }
}

TEST_CASE("recurrent: the plan counts what a lease needs for one request") {
  const CapacityPlan plan = plan_capacity({.model = tiny_qwen35().path}, 1ull << 40).value();
  const std::uint32_t positions = plan.context - 1;
  EngineRig rig(hybrid_options(plan.blocks_per_tenant));
  const LeaseId lease = rig.grant("t");
  PromptRequest request = rig.request("t", lease, "r", hybrid_prompt(11, positions), 1);
  REQUIRE(rig.submit(request));
  REQUIRE(rig.step());
  const Tenancy& tenancy = rig.engine().scheduler().tenancies().at(lease);
  CHECK(tenancy.pool.held_blocks() == plan.blocks_per_tenant);
  CHECK(plan.state_blocks_per_tenant == kStateCopies * tiny_qwen35().state);
  rig.run();
  CHECK(rig.outcome("r").tokens.size() == 1);
}

}  // namespace leasehold::testing

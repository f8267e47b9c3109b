/// Models whose layers partly have a window: a text has the same tokens whatever happens to the
/// blocks of its window, and it leases no more of them than the plan says.
#include <catch2/catch.hpp>

#include "kernels/model/capacity_plan.hpp"
#include "tests/property/tight_workload.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kWindowTokens = 60;  // more than a window

/// The models, one with several groups of layers that have a window, and one with one such group.
const char* const kWindowModels[] = {"models-2026/tiny-gemma3-f32.gguf",
                                     "models-2026/tiny-gpt-oss-f32.gguf"};

/// One of the models, and rigs of it.
struct WindowModel {
  explicit WindowModel(const char* file) : path(test_data_path(file)) {
    EngineRig rig({.model_path = path});
    block_bytes = rig.engine().kv_block_size_bytes();
    limits = rig.engine().scheduler().fit().limits();
    n_vocab = static_cast<TokenId>(rig.config().n_vocab);
    REQUIRE(limits.window.n_groups > 0);
  }
  RigOptions options(std::uint32_t blocks = 1000, std::uint32_t token_budget = 16) const {
    RigOptions options{.model_path = path, .extent_bytes = blocks * block_bytes};
    options.limits.token_budget = token_budget;
    return options;
  }
  std::vector<TokenId> prompt(std::uint64_t seed, std::uint32_t count) const {
    std::vector<TokenId> tokens;
    for (std::uint32_t i = 0; i < count; ++i)
      tokens.push_back(static_cast<TokenId>(random_at(seed, i) % (n_vocab - 8) + 4));
    return tokens;
  }
  PromptRequest request(const EngineRig& rig, LeaseId lease, const std::string& id,
                        std::vector<TokenId> prompt) const {
    PromptRequest request = rig.request("t", lease, id, std::move(prompt), kWindowTokens);
    request.sampling = {.temperature = 1.0f, .seed = 5, .ignore_eos = true};
    return request;
  }
  /// The tokens of a prompt that runs alone, in steps of one row.
  std::vector<TokenId> alone(const std::vector<TokenId>& prompt) const {
    EngineRig rig(options(1000, 1));
    REQUIRE(rig.submit(request(rig, rig.grant("t"), "r", prompt)));
    rig.run();
    REQUIRE(rig.outcome("r").tokens.size() == kWindowTokens);
    return rig.outcome("r").tokens;
  }

  std::string path;
  std::uint64_t block_bytes = 0;
  SchedulerLimits limits;
  TokenId n_vocab = 0;
};

WindowModel any_window_model() {
  return WindowModel(GENERATE(from_range(std::begin(kWindowModels), std::end(kWindowModels))));
}

const Tenancy& window_tenancy(const EngineRig& rig, LeaseId lease) {
  return rig.engine().scheduler().tenancies().at(lease);
}

bool holds_no_block(const EngineRig& rig, LeaseId lease) {
  const Tenancy& tenancy = window_tenancy(rig, lease);
  return tenancy.swap.held_blocks() == 0 && tenancy.pool.held_blocks() == tenancy.prefixes.unused();
}

void run_to_tokens(EngineRig& rig, const std::string& id, std::size_t tokens) {
  while (rig.outcome(id).tokens.size() < tokens) REQUIRE(rig.step());
}

}  // namespace

TEST_CASE("windows: a text is the same in any batch and any chunks") {
  const WindowModel model = any_window_model();
  RigOptions options = model.options(1000, GENERATE(3u, 40u));
  options.threads = GENERATE(1u, 2u);
  EngineRig rig(options);
  const LeaseId lease = rig.grant("t");
  for (std::uint32_t i = 0; i < 4; ++i) {
    REQUIRE(rig.submit(
        model.request(rig, lease, "r" + std::to_string(i), model.prompt(i, 20 + 17 * i))));
    for (int step = 0; step < 3; ++step) REQUIRE(rig.step());
  }
  rig.run();
  for (std::uint32_t i = 0; i < 4; ++i)
    CHECK(rig.outcome("r" + std::to_string(i)).tokens == model.alone(model.prompt(i, 20 + 17 * i)));
  CHECK(holds_no_block(rig, lease));
}

TEST_CASE("windows: a lease of the size that the plan says holds the longest text, step by step") {
  const WindowModel model = any_window_model();
  const CapacityPlan plan = plan_capacity({.model = model.path}, 1ull << 40).value();
  EngineRig rig(model.options(plan.blocks_per_tenant, 256));
  const LeaseId lease = rig.grant("t");
  const std::vector<TokenId> prompt = model.prompt(11, plan.context - kWindowTokens);
  REQUIRE(rig.submit(model.request(rig, lease, "r", prompt)));
  std::uint32_t most = 0;
  while (rig.engine().scheduler().has_work()) {
    REQUIRE(rig.step());
    CHECK(rig.engine().take_growth_requests().empty());
    if (rig.sequence("r") != nullptr)
      most = std::max(most, window_tenancy(rig, lease).used_blocks());
  }
  CHECK(rig.outcome("r").tokens == model.alone(prompt));
  CHECK(most <= plan.blocks_per_tenant);
  CHECK(most + plan.window_blocks_per_tenant > plan.blocks_per_tenant);
  const std::uint32_t blocks = plan.context / KvLayout::kBlockTokens;
  CHECK(plan.window_blocks_per_tenant < model.limits.window.n_groups * blocks / 2);
}

TEST_CASE("windows: a preempted text is the same, swapped or computed again") {
  const WindowModel model = any_window_model();
  const bool swaps = GENERATE(true, false);
  UnitClock clock;
  const std::uint32_t n_groups = 1 + model.limits.window.n_groups;
  // Two texts can start, with two blocks of each group, and one of them can end.
  RigOptions options = model.options(2 * (2 * n_groups + model.limits.record_blocks) + 3);
  options.probe = &clock;
  options.swap_extent_bytes = 6 * n_groups * model.block_bytes;
  EngineRig rig(options);
  clock.drive(rig.clock(), [&rig] {  // a row costs more than a copy
    Duration rows{};
    for (const auto& sequence : rig.engine().scheduler().running().all())
      rows += std::chrono::milliseconds(1) * sequence->pending();
    return rows;
  });
  const LeaseId lease = rig.grant("t");
  if (swaps) rig.grow(lease, 1, wire::MemoryPool::Swap);
  for (const std::uint64_t i : {1u, 2u, 3u})
    REQUIRE(rig.submit(model.request(rig, lease, "r" + std::to_string(i), model.prompt(i, 30))));
  for (int i = 0; i < 2'000 && rig.engine().scheduler().has_work(); ++i) {
    for (const GrowthRequest& growth : rig.engine().take_growth_requests())
      rig.engine().deny_growth(growth);
    REQUIRE(rig.step());
  }
  std::uint32_t preemptions = 0;
  std::uint32_t swapped = 0;
  for (const std::uint64_t i : {1u, 2u, 3u}) {
    const RequestOutcome& outcome = rig.outcome("r" + std::to_string(i));
    for (const Preempted& each : outcome.preemptions) swapped += each.swapped_blocks;
    preemptions += static_cast<std::uint32_t>(outcome.preemptions.size());
    CHECK(outcome.tokens == model.alone(model.prompt(i, 30)));
  }
  CHECK(preemptions > 0);
  CHECK((swapped > 0) == swaps);
  CHECK(holds_no_block(rig, lease));
}

TEST_CASE("windows: a text that moves to another lease takes its window with it") {
  const WindowModel model = any_window_model();
  EngineRig rig(model.options());
  LeaseId lease = rig.grant("t");
  const std::vector<TokenId> prompt = model.prompt(3, 37);
  REQUIRE(rig.submit(model.request(rig, lease, "r", prompt)));
  for (const std::size_t tokens : {1u, 20u, 33u}) {
    run_to_tokens(rig, "r", tokens);
    const LeaseId to = rig.grant("t");
    REQUIRE(rig.engine().move(RequestId{"r"}, to, rig.clock().now()));
    rig.drop(lease);
    lease = to;
  }
  rig.run();
  CHECK(rig.outcome("r").tokens == model.alone(prompt));
  CHECK(holds_no_block(rig, lease));
}

TEST_CASE("windows: a text goes on from an adopted window, and no position is computed again") {
  const WindowModel model = any_window_model();
  const std::uint32_t tokens = GENERATE(1u, 12u, 13u, 14u, 40u);  // 13: the positions fill a block
  EngineRig rig(model.options());
  const LeaseId old = rig.grant("t");
  const std::vector<TokenId> prompt = model.prompt(4, 52);
  PromptRequest request = model.request(rig, old, "t/r", prompt);
  REQUIRE(rig.submit(request));
  run_to_tokens(rig, "t/r", tokens);
  const auto [fresh, adopted] = rig.adopt(old, "t");
  CHECK(adopted.records == 1);
  CHECK(adopted.dropped.empty());
  request.emitted = rig.outcome("t/r").tokens;
  request.rebound_from = old;
  request.lease = fresh;
  REQUIRE(rig.submit(request));
  rig.run();
  CHECK(rig.outcome("t/r").tokens == model.alone(prompt));
  CHECK(window_tenancy(rig, fresh).served_tokens == kWindowTokens - tokens);
  CHECK(holds_no_block(rig, fresh));
}

TEST_CASE("windows: the next question of a conversation computes only what is new") {
  const WindowModel model = any_window_model();
  EngineRig rig(model.options());
  const LeaseId lease = rig.grant("t");
  std::vector<TokenId> conversation = model.prompt(6, 25);
  for (int turn = 0; turn < 3; ++turn) {
    const std::string id = "turn" + std::to_string(turn);
    REQUIRE(rig.submit(model.request(rig, lease, id, conversation)));
    const auto known = static_cast<std::uint32_t>(conversation.size());
    rig.run();
    const RequestOutcome& outcome = rig.outcome(id);
    CHECK(outcome.tokens == model.alone(conversation));
    const std::uint32_t cached = (known - 9) / KvLayout::kBlockTokens * KvLayout::kBlockTokens;
    CHECK(outcome.completions.at(0).cached_tokens == (turn == 0 ? 0 : cached));
    conversation.insert(conversation.end(), outcome.tokens.begin(), outcome.tokens.end());
    const std::vector<TokenId> question = model.prompt(70 + turn, 8);
    conversation.insert(conversation.end(), question.begin(), question.end());
  }
}

TEST_CASE("windows: proposed tokens change no text, whether they are accepted or not") {
  const WindowModel model = any_window_model();
  RigOptions options = model.options();
  options.limits.speculate = 6;
  EngineRig rig(options);
  const LeaseId lease = rig.grant("t");
  std::vector<TokenId> prompt = model.prompt(12, 10);
  for (int i = 0; i < 3; ++i) prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 10);
  REQUIRE(rig.submit(model.request(rig, lease, "r", prompt)));
  rig.run();
  CHECK(rig.outcome("r").tokens == model.alone(prompt));
  CHECK(holds_no_block(rig, lease));
}

}  // namespace leasehold::testing

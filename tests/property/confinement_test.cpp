/// What goes wrong in one request ends that request with its reason. Every other request gets the
/// same tokens in the same steps as without it.
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>

#include "ipc/region/mapping.hpp"
#include "kernels/reference/reference_backend.hpp"
#include "tests/property/damaged_model.hpp"
#include "tests/property/four_tenants.hpp"
#include "tests/support/required.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kBystanders = 3;
constexpr std::uint32_t kBystanderTokens = 40;
constexpr std::uint32_t kMostTokens = 480;  // more than one extent holds
constexpr TokenId kPoisonedToken = 300;
constexpr std::uint32_t kFaultTick = 6;  // every request decodes
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Passes everything on, and throws when the host reads the logits of one row.
class ThrowingBackend final : public Backend {
 public:
  explicit ThrowingBackend(std::unique_ptr<Backend> backend) : to_(std::move(backend)) {}

  /// Throws at the next fetch number `row`, counted from 0.
  void throw_at(std::size_t row) { fetches_left_ = row; }

  std::span<const float> fetch(const float* at, std::size_t count) override {
    if (fetches_left_ && (*fetches_left_)-- == 0) {
      fetches_left_.reset();
      throw std::bad_alloc();
    }
    return to_->fetch(at, count);
  }

  std::string_view name() const override { return to_->name(); }
  std::byte* allocate_scratch(std::size_t size) override { return to_->allocate_scratch(size); }
  void clear_scratch(std::byte* at, std::size_t size) override { to_->clear_scratch(at, size); }
  void begin_step(const StepInput& input) override { to_->begin_step(input); }
  LaunchStatus finish_step(const GateSet& gates) override { return to_->finish_step(gates); }
  LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) override {
    return to_->embedding(context, args);
  }
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) override {
    return to_->rms_norm(context, args);
  }
  LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) override {
    return to_->matmul(context, args);
  }
  LaunchStatus rope(const LaunchContext& context, const RopeArgs& args) override {
    return to_->rope(context, args);
  }
  LaunchStatus kv_append(const LaunchContext& context, const KvAppendArgs& args) override {
    return to_->kv_append(context, args);
  }
  LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) override {
    return to_->attention(context, args);
  }
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) override {
    return to_->swiglu(context, args);
  }
  LaunchStatus expert_routing(const LaunchContext& context,
                              const ExpertRoutingArgs& args) override {
    return to_->expert_routing(context, args);
  }
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) override {
    return to_->expert_matmul(context, args);
  }
  LaunchStatus copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) override {
    return to_->copy_blocks(context, args);
  }
  LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) override {
    return to_->weighted_sum(context, args);
  }
  LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) override {
    return to_->copy_in(context, args);
  }
  void write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) override {
    to_->write(permit, pieces);
  }
  void clear_workspace() override { to_->clear_workspace(); }
  std::vector<std::uint64_t> units_run() const override { return to_->units_run(); }

 private:
  std::unique_ptr<Backend> to_;
  std::optional<std::size_t> fetches_left_;
};

/// Three bystanders, and what one case adds.
struct Bench {
  explicit Bench(const std::string& model)
      : rig({.model_path = model,
             .make_backend =
                 [this](const BackendLimits& limits, const ThreadGate& gate) {
                   auto made = std::make_unique<ThrowingBackend>(
                       std::make_unique<ReferenceBackend>(limits, gate));
                   backend = made.get();
                   return made;
                 },
             .extent_bytes = 256u << 10}) {}

  ThrowingBackend* backend = nullptr;
  EngineRig rig;
  LeaseId lease;          ///< Of the victim.
  std::size_t count = 0;  ///< A case's own.

  PromptRequest victim(const std::string& id = "victim", std::uint32_t tokens = kBystanderTokens) {
    return rig.request("victim", lease, id, rig.encode(prompts()[3]), tokens);
  }
  const Completed& end_of(const std::string& id) {
    CAPTURE(id);
    REQUIRE(rig.outcome(id).completions.size() == 1);
    return rig.outcome(id).completions[0];
  }
  void check_error(const std::string& id, Errc code) {
    const Completed& end = end_of(id);
    REQUIRE(end.reason == CompletionReason::EngineError);
    REQUIRE(end.error);
    CHECK(end.error->code == code);
    CHECK(end.error->scope == FailureScope::Tenant);
  }
};

struct Misfortune {
  std::string what;
  std::function<void(Bench&)> begin;
  std::function<void(Bench&, std::uint32_t)> before_step = [](Bench&, std::uint32_t) {};
  std::function<void(Bench&)> check;
};

/// The step and the token of each event, by bystander.
using Timeline = std::vector<std::vector<std::pair<std::uint32_t, TokenId>>>;

std::string bystander(std::uint32_t i) {
  return "bystander" + std::to_string(i);
}

Timeline run(Bench& bench, const Misfortune& misfortune) {
  bench.lease = bench.rig.grant("victim", 1, 16);
  misfortune.begin(bench);
  for (std::uint32_t i = 0; i < kBystanders; ++i) {
    const LeaseId lease = bench.rig.grant(bystander(i), 1);
    REQUIRE(bench.rig.submit(bench.rig.request(bystander(i), lease, bystander(i),
                                               bench.rig.encode(prompts()[i]), kBystanderTokens)));
  }
  Timeline timeline(kBystanders);
  for (std::uint32_t tick = 0; bench.rig.engine().scheduler().has_work(); ++tick) {
    REQUIRE(tick < 20'000);
    misfortune.before_step(bench, tick);
    REQUIRE(bench.rig.step());
    for (std::uint32_t i = 0; i < kBystanders; ++i) {
      const auto& tokens = bench.rig.outcome(bystander(i)).tokens;
      while (timeline[i].size() < tokens.size())
        timeline[i].emplace_back(tick, tokens[timeline[i].size()]);
    }
    for (const GrowthRequest& growth : bench.rig.engine().take_growth_requests()) {
      if (growth.lease == bench.lease)
        bench.rig.engine().deny_growth(growth);
      else
        bench.rig.grow(growth.lease);
    }
  }
  for (std::uint32_t i = 0; i < kBystanders; ++i)
    CHECK(bench.end_of(bystander(i)).reason == CompletionReason::MaxTokensReached);
  misfortune.check(bench);
  return timeline;
}

Misfortune nan_in_a_row() {
  return {.what = "NaN in a row of the forward pass",
          .begin =
              [](Bench& bench) {
                PromptRequest poisoned = bench.victim();
                poisoned.prompt.push_back(kPoisonedToken);
                REQUIRE(bench.rig.submit(poisoned));
              },
          .check = [](Bench& bench) { bench.check_error("victim", Errc::NumericFault); }};
}

Misfortune invalid_sampling() {
  return {.what = "sampling values out of range",
          .begin =
              [](Bench& bench) {
                const auto refused = [&](SamplingParams params) {
                  PromptRequest request = bench.victim();
                  request.sampling = std::move(params);
                  const Result<void> submitted = bench.rig.submit(request);
                  REQUIRE_FALSE(submitted);
                  CHECK(submitted.error().code == Errc::BadRequest);
                };
                refused({.temperature = kNan});
                refused({.temperature = -1.0f});
                refused({.top_p = std::numeric_limits<float>::infinity()});
                refused({.logit_bias = {{.token = 1, .bias = kNan}}});
                refused({.logit_bias = {{.token = 1 << 20, .bias = 1.0f}}});
              },
          .check = [](Bench& bench) { CHECK(bench.rig.outcome("victim").tokens.empty()); }};
}

/// Overwrites the keys and values of the request with NaN, as a stray write would.
void poison_blocks(Bench& bench) {
  const Sequence* sequence = bench.rig.sequence("victim");
  REQUIRE(sequence != nullptr);
  const std::uint64_t block_bytes = bench.rig.engine().kv_block_size_bytes();
  for (const BlockId block : sequence->blocks.blocks()) {
    const MemoryObject& extent = bench.rig.extents(bench.lease).at(block.extent);
    const Mapping memory =
        required(Mapping::map(extent.fd(), extent.size_bytes(), MapAccess::ReadWrite));
    std::memset(memory.data() + block.index * block_bytes, 0x7E, block_bytes);
  }
}

Misfortune poisoned_block() {
  return {.what = "a block that holds NaN",
          .begin = [](Bench& bench) { REQUIRE(bench.rig.submit(bench.victim())); },
          .before_step =
              [](Bench& bench, std::uint32_t tick) {
                if (tick == kFaultTick) poison_blocks(bench);
                // The same prompt finds no damaged block in the cache.
                if (tick == 2 * kFaultTick) REQUIRE(bench.rig.submit(bench.victim("again")));
              },
          .check =
              [](Bench& bench) {
                bench.check_error("victim", Errc::NumericFault);
                CHECK(bench.end_of("again").reason == CompletionReason::MaxTokensReached);
              }};
}

Misfortune out_of_blocks() {
  return {.what = "a lease whose blocks run out",
          .begin =
              [](Bench& bench) {
                REQUIRE(bench.rig.submit(bench.victim("victim", kMostTokens)));
                PromptRequest sibling = bench.victim("sibling");
                sibling.lease = bench.rig.grant("victim", 1, 16);
                REQUIRE(bench.rig.submit(sibling));
              },
          .check =
              [](Bench& bench) {
                bench.check_error("victim", Errc::OutOfBlocks);
                CHECK(bench.rig.outcome("victim").tokens.size() > kBystanderTokens);
                CHECK(bench.end_of("sibling").reason == CompletionReason::MaxTokensReached);
              }};
}

Misfortune exception() {
  return {.what = "an exception while a token is drawn",
          .begin = [](Bench& bench) { REQUIRE(bench.rig.submit(bench.victim())); },
          .before_step =
              [](Bench& bench, std::uint32_t tick) {
                if (tick != kFaultTick) return;
                const auto& running = bench.rig.engine().scheduler().running();
                std::size_t row = 0;  // rows are drawn in the order of the running sequences
                while (running[row]->request.tenant != TenantId{"victim"}) ++row;
                bench.backend->throw_at(row);
              },
          .check =
              [](Bench& bench) {
                bench.check_error("victim", Errc::OutOfMemory);
                CHECK(bench.rig.outcome("victim").tokens.size() == kFaultTick);
              }};
}

/// After each letter 2 000 copies of a rule that has 16 000 ways to be empty.
Misfortune grammar() {
  return {.what = "a grammar that explodes",
          .begin =
              [](Bench& bench) {
                std::string text = "root ::= ([A-Za-z]";
                for (int i = 0; i < 2000; ++i) text += " hollow";
                text += ")*\nhollow ::= " + std::string(16'000, '|');
                PromptRequest request = bench.victim();
                request.sampling = {.grammar = {GrammarKind::Gbnf, text}};
                request.constraint = {
                    required(compile_grammar(request.sampling.grammar)),
                    std::make_shared<const GrammarVocabulary>(bench.rig.tokenizer())};
                REQUIRE(bench.rig.submit(request));
              },
          .check = [](Bench& bench) { bench.check_error("victim", Errc::BadRequest); }};
}

/// Ten leases; what their queues accept runs, eight at a time.
Misfortune many_requests() {
  static constexpr int kRequests = 10'000;
  return {.what = "10 000 requests of one tenant",
          .begin =
              [](Bench& bench) {
                std::vector<LeaseId> leases;
                for (int i = 0; i < 10; ++i) leases.push_back(bench.rig.grant("victim"));
                for (int i = 0; i < kRequests; ++i) {
                  const Result<void> submitted = bench.rig.submit(bench.rig.request(
                      "victim", leases[i % leases.size()], std::to_string(i), {1, 5, 6}, 2));
                  bench.count += submitted ? 1 : 0;
                  if (submitted) continue;
                  const Errc code = submitted.error().code;
                  CHECK((code == Errc::QuotaConcurrent || code == Errc::QueueFull));
                }
              },
          .check =
              [](Bench& bench) {
                CHECK(bench.count > 100);
                CHECK(bench.count <= SchedulerLimits{}.max_waiting / 2);
                std::size_t ended = 0;
                for (int i = 0; i < kRequests; ++i) {
                  const RequestOutcome& outcome = bench.rig.outcome(std::to_string(i));
                  if (outcome.completions.empty()) continue;
                  CHECK(outcome.completions.at(0).reason == CompletionReason::MaxTokensReached);
                  ++ended;
                }
                CHECK(ended == bench.count);
              }};
}

}  // namespace

TEST_CASE("confinement: what goes wrong in one request changes no token and no step of another") {
  const std::string model = model_with_nan_embedding(kPoisonedToken);
  Bench calm(model);
  const Timeline expected = run(calm, {.begin = [](Bench&) {}, .check = [](Bench&) {}});
  for (const auto& tokens : expected) REQUIRE(tokens.size() == kBystanderTokens);
  for (const Misfortune& misfortune : {nan_in_a_row(), invalid_sampling(), poisoned_block(),
                                       out_of_blocks(), exception(), grammar(), many_requests()}) {
    CAPTURE(misfortune.what);
    Bench bench(model);
    CHECK(run(bench, misfortune) == expected);
  }
  std::filesystem::remove(model);
}

}  // namespace leasehold::testing

#include "tests/property/misfortunes.hpp"

#include <cstring>
#include <limits>

#include "ipc/region/mapping.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/reference/reference_backend.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/property/throwing_backend.hpp"
#include "tests/support/required.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {

namespace {

constexpr std::uint32_t kMostTokens = 480;  // more than one extent holds
constexpr std::uint32_t kFaultTick = 6;     // every request decodes
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::unique_ptr<Backend> make_scene_backend(const BackendLimits& limits, const ThreadGate& gate,
                                            bool reference) {
  if (reference) return std::make_unique<ReferenceBackend>(limits, gate);
  return required(CpuBackend::create(limits, {gate}));
}

PromptRequest with_grammar(ConfinementScene& scene, const std::string& text) {
  PromptRequest request = scene.victim();
  request.sampling = {.grammar = {GrammarKind::Gbnf, text}};
  request.constraint = {required(compile_grammar(request.sampling.grammar)),
                        std::make_shared<const GrammarVocabulary>(scene.rig.tokenizer())};
  return request;
}

Misfortune nan_in_a_row() {
  return {
      .name = "nan",
      .what = "NaN in a row of the forward pass",
      .begin =
          [](ConfinementScene& scene) {
            PromptRequest request = scene.victim();
            request.prompt.push_back(kPoisonedToken + (scene.is_faulty ? 0 : 1));
            REQUIRE(scene.rig.submit(request));
          },
      .check = [](ConfinementScene& scene) { scene.check_error("victim", Errc::NumericFault); }};
}

/// Each step meets five such requests.
Misfortune invalid_sampling() {
  return {
      .name = "sampling",
      .what = "sampling values out of range",
      .before_step =
          [](ConfinementScene& scene, std::uint32_t) {
            if (!scene.is_faulty) return;
            const SamplingParams wrong[] = {{.temperature = kNan},
                                            {.temperature = -1.0f},
                                            {.top_p = std::numeric_limits<float>::infinity()},
                                            {.logit_bias = {{.token = 1, .bias = kNan}}},
                                            {.logit_bias = {{.token = 1 << 20, .bias = 1.0f}}}};
            for (const SamplingParams& params : wrong) {
              PromptRequest request = scene.victim();
              request.sampling = params;
              const Result<void> submitted = scene.submit(request);
              REQUIRE_FALSE(submitted);
              CHECK(submitted.error().code == Errc::BadRequest);
            }
          },
      .check = [](ConfinementScene& scene) { CHECK(scene.rig.outcome("victim").tokens.empty()); }};
}

/// Overwrites the keys and values of the request with NaN, as a stray write would.
void poison_blocks(ConfinementScene& scene) {
  const Sequence* sequence = scene.rig.sequence("victim");
  REQUIRE(sequence != nullptr);
  const std::uint64_t block_bytes = scene.rig.engine().kv_block_size_bytes();
  for (const BlockId block : sequence->blocks.blocks()) {
    const MemoryObject& extent = scene.rig.extents(scene.lease).at(block.extent);
    const Mapping memory =
        required(Mapping::map(extent.fd(), extent.size_bytes(), MapAccess::ReadWrite));
    std::memset(memory.data() + block.index * block_bytes, 0x7E, block_bytes);
  }
}

Misfortune poisoned_block() {
  return {.name = "poisoned_block",
          .what = "a block that holds NaN",
          .begin = [](ConfinementScene& scene) { REQUIRE(scene.rig.submit(scene.victim())); },
          .before_step =
              [](ConfinementScene& scene, std::uint32_t tick) {
                if (tick == kFaultTick && scene.is_faulty) poison_blocks(scene);
                if (tick != 2 * kFaultTick) return;
                // The same prompt finds no damaged block in the cache. An undamaged one is not
                // there, either: both loads compute it.
                PromptRequest again = scene.victim("again");
                if (!scene.is_faulty) again.prompt.front() = kPoisonedToken + 1;
                REQUIRE(scene.rig.submit(again));
              },
          .check =
              [](ConfinementScene& scene) {
                scene.check_error("victim", Errc::NumericFault);
                CHECK(scene.end_of("again").reason == CompletionReason::MaxTokensReached);
              }};
}

Misfortune out_of_blocks() {
  return {.name = "out_of_blocks",
          .what = "a lease whose blocks run out",
          .begin =
              [](ConfinementScene& scene) {
                scene.lends_victim = !scene.is_faulty;
                REQUIRE(scene.rig.submit(scene.victim("victim", kMostTokens)));
                PromptRequest sibling = scene.victim("sibling");
                sibling.lease = scene.rig.grant("victim", 1, 16);
                REQUIRE(scene.rig.submit(sibling));
              },
          .check =
              [](ConfinementScene& scene) {
                scene.check_error("victim", Errc::OutOfBlocks);
                CHECK(scene.rig.outcome("victim").tokens.size() > kBystanderTokens);
                CHECK(scene.end_of("sibling").reason == CompletionReason::MaxTokensReached);
              }};
}

Misfortune exception() {
  return {.name = "exception",
          .what = "an exception while a token is drawn",
          .begin = [](ConfinementScene& scene) { REQUIRE(scene.rig.submit(scene.victim())); },
          .before_step =
              [](ConfinementScene& scene, std::uint32_t tick) {
                if (tick == kFaultTick && scene.is_faulty) scene.throw_at_victim();
              },
          .check =
              [](ConfinementScene& scene) {
                scene.check_error("victim", Errc::OutOfMemory);
                CHECK(scene.rig.outcome("victim").tokens.size() == kFaultTick);
              }};
}

/// After each letter 2 000 copies of a rule that has 16 000 ways to be empty.
Misfortune grammar() {
  return {.name = "grammar",
          .what = "a grammar that explodes",
          .begin =
              [](ConfinementScene& scene) {
                std::string text = "root ::= ([A-Za-z]";
                for (int i = 0; i < 2000; ++i) text += " hollow";
                text += ")*\nhollow ::= " + std::string(16'000, '|');
                REQUIRE(scene.rig.submit(
                    with_grammar(scene, scene.is_faulty ? text : "root ::= [A-Za-z ]*")));
              },
          .check = [](ConfinementScene& scene) { scene.check_error("victim", Errc::BadRequest); }};
}

constexpr std::uint32_t kManyRequests = 10'000;
constexpr std::uint32_t kRunAtOnce = 8;

Result<void> submit_small(ConfinementScene& scene, std::size_t number) {
  return scene.submit(scene.rig.request("victim", scene.leases[number % scene.leases.size()],
                                        std::to_string(number), {1, 5, 6}, 2));
}

std::size_t open_requests(const ConfinementScene& scene) {
  std::size_t open = 0;
  for (const LeaseId lease : scene.leases) {
    const Tenancy& tenancy = scene.rig.engine().scheduler().tenancies().at(lease);
    open += tenancy.running + tenancy.waiting.size();
  }
  return open;
}

/// The tenant has ten leases, and submits while the bystanders run; without the fault, as many as
/// may run.
void submit_many(ConfinementScene& scene, std::uint32_t tick) {
  if (tick >= scene.bystander_tokens()) return;
  if (!scene.is_faulty) {
    while (open_requests(scene) < kRunAtOnce) REQUIRE(submit_small(scene, scene.count++));
    return;
  }
  const std::uint32_t per_step = kManyRequests / scene.bystander_tokens();
  for (std::uint32_t i = 0; i < per_step; ++i) {
    const Result<void> submitted = submit_small(scene, tick * per_step + i);
    if (submitted) {
      ++scene.count;
    } else if (submitted.error().code != Errc::QuotaConcurrent) {
      REQUIRE(submitted.error().code == Errc::QueueFull);
    }
  }
  CHECK(scene.rig.engine().scheduler().tenancies().waiting_count() <=
        SchedulerLimits{}.max_waiting / 2);
}

Misfortune many_requests() {
  return {.name = "many_requests",
          .what = "10 000 requests of one tenant",
          .begin =
              [](ConfinementScene& scene) {
                for (int i = 0; i < 10; ++i)
                  scene.leases.push_back(scene.rig.grant("victim", 1, kRunAtOnce));
              },
          .before_step = submit_many,
          .check =
              [](ConfinementScene& scene) {
                CHECK(scene.count > 100);
                std::size_t ended = 0;
                for (std::uint32_t i = 0; i < kManyRequests; ++i) {
                  const RequestOutcome& outcome = scene.rig.outcome(std::to_string(i));
                  if (outcome.completions.empty()) continue;
                  CHECK(outcome.completions.at(0).reason == CompletionReason::MaxTokensReached);
                  ++ended;
                }
                CHECK(ended == scene.count);
              }};
}

std::string bystander(std::uint32_t i) {
  return "bystander" + std::to_string(i);
}

void answer_growth(ConfinementScene& scene) {
  for (const GrowthRequest& growth : scene.rig.engine().take_growth_requests()) {
    if (growth.lease == scene.lease && !scene.lends_victim)
      scene.rig.engine().deny_growth(growth);
    else
      scene.rig.grow(growth.lease);
  }
}

void submit_bystanders(ConfinementScene& scene) {
  for (std::uint32_t i = 0; i < kBystanders; ++i) {
    const LeaseId lease = scene.rig.grant(bystander(i), 1);
    REQUIRE(scene.rig.submit(scene.rig.request(bystander(i), lease, bystander(i),
                                               scene.rig.encode(prompts()[i]),
                                               scene.bystander_tokens())));
  }
}

/// Adds the tokens of a step, and the time since the token before.
class BystanderRecorder {
 public:
  explicit BystanderRecorder(BystanderRun& run) : run_(run), last_token_ns_(kBystanders) {
    run_.timeline.resize(kBystanders);
  }

  void add_step(ConfinementScene& scene, std::uint32_t tick) {
    now_ns_ += scene.take_cpu_ns();
    for (std::uint32_t i = 0; i < kBystanders; ++i) {
      const auto& tokens = scene.rig.outcome(bystander(i)).tokens;
      auto& timeline = run_.timeline[i];
      while (timeline.size() < tokens.size()) {
        if (!timeline.empty()) run_.gaps_us.push_back((now_ns_ - last_token_ns_[i]) / 1e3);
        last_token_ns_[i] = now_ns_;
        timeline.emplace_back(tick, tokens[timeline.size()]);
        run_.units = scene.rig.units_run();
      }
    }
  }

 private:
  BystanderRun& run_;
  double now_ns_ = 0;  // CPU time of the engine
  std::vector<double> last_token_ns_;
};

}  // namespace

// ------------------------------------------------------------------------------------- the scene

ConfinementScene::ConfinementScene(const std::string& model, const Options& options)
    : rig({.model_path = model,
           .make_backend =
               [this, reference = options.reference](const BackendLimits& limits,
                                                     const ThreadGate& gate) {
                 auto made =
                     std::make_unique<ThrowingBackend>(make_scene_backend(limits, gate, reference));
                 backend = made.get();
                 return made;
               },
           .extent_bytes = 256u << 10}),
      lease(rig.grant("victim", 1, 16)),
      is_faulty(options.is_faulty),
      bystander_tokens_(options.bystander_tokens) {}

PromptRequest ConfinementScene::victim(const std::string& id, std::uint32_t tokens) {
  return rig.request("victim", lease, id, rig.encode(prompts()[3]), tokens);
}

Result<void> ConfinementScene::submit(const PromptRequest& request) {
  const double begin_ns = bench::thread_time_ns();
  const Result<void> submitted = rig.submit(request);
  cpu_ns_ += bench::thread_time_ns() - begin_ns;
  return submitted;
}

/// Rows are drawn in the order of the running sequences.
void ConfinementScene::throw_at_victim() {
  const auto& running = rig.engine().scheduler().running().all();
  std::size_t row = 0;
  while (running[row]->request.tenant != TenantId{"victim"}) ++row;
  backend->throw_at(row);
}

const Completed& ConfinementScene::end_of(const std::string& id) {
  CAPTURE(id);
  return rig.completion(id);
}

void ConfinementScene::check_error(const std::string& id, Errc code) {
  const Completed& end = end_of(id);
  REQUIRE(end.reason == CompletionReason::EngineError);
  REQUIRE(end.error);
  CHECK(end.error->code == code);
  CHECK(end.error->scope == FailureScope::Tenant);
}

// --------------------------------------------------------------------------------------- the run

std::vector<Misfortune> misfortunes() {
  return {nan_in_a_row(), invalid_sampling(), poisoned_block(), out_of_blocks(),
          exception(),    grammar(),          many_requests()};
}

BystanderRun run_bystanders(ConfinementScene& scene, const Misfortune& misfortune) {
  misfortune.begin(scene);
  submit_bystanders(scene);
  (void)scene.take_cpu_ns();
  BystanderRun run;
  BystanderRecorder recorder(run);
  for (std::uint32_t tick = 0; scene.rig.engine().scheduler().has_work(); ++tick) {
    REQUIRE(tick < 20'000);
    misfortune.before_step(scene, tick);
    REQUIRE(scene.rig.step());
    recorder.add_step(scene, tick);
    answer_growth(scene);
  }
  for (std::uint32_t i = 0; i < kBystanders; ++i)
    CHECK(scene.end_of(bystander(i)).reason == CompletionReason::MaxTokensReached);
  if (scene.is_faulty) misfortune.check(scene);
  return run;
}

}  // namespace leasehold::testing

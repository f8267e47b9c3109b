/// A pool that is too small for all requests changes when they run, and none of their tokens.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "common/random.hpp"
#include "tests/property/damaged_model.hpp"
#include "tests/property/four_tenants.hpp"
#include "worker/kv/sequence_record.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {
namespace {

constexpr TokenId kPoisoned = 444;  // its embedding is not finite
constexpr std::uint32_t kTightTokens = 40;

struct Kind {
  const char* text = "";
  SamplingParams sampling;
  bool is_poisoned = false;
};

const std::vector<Kind>& kinds_of_requests() {
  static const std::vector<Kind> kinds{
      {.text = "Once upon a time", .sampling = {.ignore_eos = true}},
      {.text = "The dog saw a ball. The dog was happy",
       .sampling = {.temperature = 1.0f, .seed = 11, .ignore_eos = true, .top_k = 30}},
      {.text = "Once upon a time there was a girl",
       .sampling = {.ignore_eos = true, .repetition_penalty = 1.3f, .penalty_window = 20}},
      {.text = "One day a girl went to the park with her mother. She was happy",
       .sampling = {.temperature = 0.8f, .seed = 4, .ignore_eos = true, .stop = {"e t"}}},
      {.text = "Lily",
       .sampling = {.temperature = 1.0f,
                    .seed = 9,
                    .grammar = {GrammarKind::Gbnf, R"(root ::= ([A-Z] [a-z]{1,6} " ")+ "!")"}}},
      {.text = "Tom and Sue had a red box.", .sampling = {.ignore_eos = true}, .is_poisoned = true},
  };
  return kinds;
}

/// Gives leases of a few blocks, which hold the longest request and not two of them.
class TightRig : public EngineRig {
 public:
  explicit TightRig(std::uint32_t kv_blocks, const std::string& model = bundled_model_path())
      : EngineRig({.model_path = model,
                   .limits = {.max_batch_size = 8, .token_budget = 40},
                   .extent_bytes = extent_bytes(kv_blocks)}) {}

  PromptRequest request_of(const Kind& kind, const std::string& tenant, LeaseId lease,
                           const std::string& id) {
    PromptRequest request = EngineRig::request(tenant, lease, id, encode(kind.text), kTightTokens);
    if (kind.is_poisoned) request.prompt.push_back(kPoisoned);
    request.sampling = kind.sampling;
    const auto grammar = compile_grammar(kind.sampling.grammar);
    REQUIRE(grammar);
    if (*grammar) request.constraint = {*grammar, vocabulary()};
    return request;
  }
  void step_without_growth() {
    for (const GrowthRequest& growth : engine().take_growth_requests())
      engine().deny_growth(growth);
    REQUIRE(step());
  }
  /// KV blocks, with the records of `records` sequences.
  static std::uint32_t blocks(std::uint32_t kv_blocks, std::uint32_t records) {
    static const std::uint32_t of_record = [] {
      const EngineRig rig;
      return record_block_count(rig.config().n_context, rig.engine().kv_block_size_bytes());
    }();
    return kv_blocks + records * of_record;
  }

 private:
  static std::size_t extent_bytes(std::uint32_t kv_blocks) {
    static const std::size_t block = EngineRig().engine().kv_block_size_bytes();
    return kv_blocks * block;
  }
  std::shared_ptr<const GrammarVocabulary> vocabulary() {
    if (!vocabulary_) vocabulary_ = std::make_shared<const GrammarVocabulary>(tokenizer());
    return vocabulary_;
  }
  std::shared_ptr<const GrammarVocabulary> vocabulary_;
};

struct TightAnswer {
  std::vector<TokenId> tokens;
  CompletionReason reason{};
  std::optional<Errc> error;
  bool operator==(const TightAnswer&) const = default;
};

TightAnswer tight_answer_of(const RequestOutcome& outcome) {
  REQUIRE(outcome.completions.size() == 1);
  const Completed& end = outcome.completions[0];
  return {outcome.tokens, end.reason, end.error ? std::optional(end.error->code) : std::nullopt};
}

/// What each kind of request gets with plenty of memory.
std::vector<TightAnswer> tight_answers_alone(const std::string& model) {
  std::vector<TightAnswer> answers;
  for (const Kind& kind : kinds_of_requests()) {
    TightRig rig(100, model);
    REQUIRE(rig.submit(rig.request_of(kind, "t", rig.grant("t"), "r")));
    rig.run();
    REQUIRE(rig.outcome("r").preemptions.empty());
    answers.push_back(tight_answer_of(rig.outcome("r")));
  }
  return answers;
}

/// Random submits, cancels and revocations of two tenants whose leases never grow.
class TightWorkload {
 public:
  TightWorkload(std::uint64_t seed, const std::string& model, std::vector<TightAnswer> expected)
      : random_(seed), rig_(TightRig::blocks(9, 3), model), expected_(std::move(expected)) {
    for (const char* tenant : {"a", "b"}) leases_[tenant] = rig_.grant(tenant);
  }

  void operate() {
    const std::uint64_t what = random_.below(20);
    if (what < 6 && open_.size() < 12) submit();
    if (what == 6) cancel();
    if (what == 7 && random_.below(4) == 0) revoke();
    advance();
  }
  void finish() {
    for (int i = 0; i < 10'000 && !open_.empty(); ++i) advance();
    REQUIRE(open_.empty());
    REQUIRE_FALSE(rig_.engine().scheduler().has_work());
    for (const auto& [lease, tenancy] : rig_.engine().scheduler().tenancies())
      REQUIRE(tenancy.pool.held_blocks() == tenancy.prefixes.unused());
  }

  int completed = 0;
  int faults = 0;
  int cancelled_waiting = 0;
  int revoked_waiting = 0;
  int preempted = 0;
  std::set<std::size_t> preempted_kinds;

 private:
  struct Open {
    std::size_t kind = 0;
    std::string tenant;
    bool is_cancelled = false;
  };

  void submit() {
    const std::string id = "r" + std::to_string(++ids_);
    const std::string tenant = random_.below(2) == 0 ? "a" : "b";
    // A numeric fault is rare, because its request leaves nothing in the cache.
    std::size_t kind = random_.below(expected_.size());
    if (kinds_of_requests()[kind].is_poisoned && random_.below(3) != 0) kind = 0;
    open_[id] = {.kind = kind, .tenant = tenant};
    REQUIRE(rig_.submit(request(id)));
  }

  PromptRequest request(const std::string& id) {
    const Open& open = open_.at(id);
    return rig_.request_of(kinds_of_requests()[open.kind], open.tenant, leases_[open.tenant], id);
  }

  bool was_preempted(const std::string& id) {
    return rig_.sequence(id) == nullptr && !rig_.outcome(id).preemptions.empty();
  }

  void cancel() {
    if (open_.empty()) return;
    auto which = std::next(open_.begin(), static_cast<long>(random_.below(open_.size())));
    if (was_preempted(which->first)) ++cancelled_waiting;
    which->second.is_cancelled = true;
    REQUIRE(rig_.engine().cancel(RequestId{which->first}));
  }

  void revoke() {
    const std::string tenant = random_.below(2) == 0 ? "a" : "b";
    for (const auto& [id, open] : open_)
      if (open.tenant == tenant && was_preempted(id)) ++revoked_waiting;
    const LeaseId before = leases_[tenant];
    rig_.revoke(before);
    rig_.step_without_growth();
    rig_.drop(before);
    leases_[tenant] = rig_.grant(tenant);
    for (const auto& [id, open] : open_) {
      RequestOutcome& outcome = rig_.outcome(id);
      if (open.tenant != tenant || outcome.completions.empty()) continue;
      if (outcome.completions[0].reason != CompletionReason::Revoked) continue;
      outcome.completions.clear();
      PromptRequest rebind = request(id);
      rebind.emitted = outcome.tokens;
      rebind.rebound_from = before;
      REQUIRE(rig_.submit(rebind));
    }
  }

  void advance() {
    rig_.step_without_growth();
    for (auto each = open_.begin(); each != open_.end();)
      each = settle(each->first, each->second) ? open_.erase(each) : std::next(each);
    if (++steps_ % 500 == 0 && open_.empty()) rig_.clear_outcomes();
  }

  /// True when the request has ended, as it ends with plenty of memory.
  bool settle(const std::string& id, const Open& open) {
    const RequestOutcome& outcome = rig_.outcome(id);
    REQUIRE(outcome.rejections.empty());
    for (std::uint32_t i = 0; i < outcome.positions.size(); ++i) REQUIRE(outcome.positions[i] == i);
    if (outcome.completions.empty()) return false;
    CAPTURE(id, open.kind);
    const TightAnswer& expected = expected_[open.kind];
    const TightAnswer got = tight_answer_of(outcome);
    preempted += static_cast<int>(outcome.preemptions.size());
    if (!outcome.preemptions.empty()) preempted_kinds.insert(open.kind);
    if (open.is_cancelled && got.reason == CompletionReason::Cancelled) {
      REQUIRE(got.tokens.size() <= expected.tokens.size());
      REQUIRE(std::ranges::equal(got.tokens, std::span(expected.tokens).first(got.tokens.size())));
      return true;
    }
    REQUIRE(got == expected);
    ++(got.error ? faults : completed);
    return true;
  }

  SeededRandom random_;
  TightRig rig_;
  std::vector<TightAnswer> expected_;
  std::map<std::string, LeaseId> leases_;
  std::map<std::string, Open> open_;
  std::uint64_t ids_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace

TEST_CASE("preemption: random requests in a tiny pool get the tokens that they get alone") {
  const char* given = std::getenv("SEED");
  const std::uint64_t seed = given == nullptr ? 7 : std::strtoull(given, nullptr, 10);
  CAPTURE(seed);
  const std::string model = model_with_nan_embedding(kPoisoned);
  TightWorkload workload(seed, model, tight_answers_alone(model));
  std::filesystem::remove(model);
  for (int i = 0; i < 10'000; ++i) workload.operate();
  workload.finish();
  // Or the workload proves nothing.
  CHECK(workload.completed > 300);
  CHECK(workload.faults > 20);
  CHECK(workload.cancelled_waiting > 20);
  CHECK(workload.revoked_waiting > 20);
  CHECK(workload.preempted > 300);
  CHECK(workload.preempted_kinds.size() >= 5);
}

TEST_CASE(
    "preemption: a request that goes on has the bits and the record of one that never waited") {
  const Kind& kind = kinds_of_requests()[GENERATE(0u, 1u, 4u)];
  Run expected;
  TightRig calm(100);
  REQUIRE(calm.submit(calm.request_of(kind, "t", calm.grant("t"), "younger")));
  while (calm.engine().scheduler().has_work()) {
    REQUIRE(calm.step());
    append_last_logits(calm, "younger", expected);
  }
  TightRig rig(TightRig::blocks(4, 2));
  const LeaseId lease = rig.grant("t");
  REQUIRE(rig.submit(rig.request_of(kinds_of_requests()[0], "t", lease, "older")));
  REQUIRE(rig.submit(rig.request_of(kind, "t", lease, "younger")));
  Run got;
  int records = 0;
  while (rig.engine().scheduler().has_work()) {
    rig.step_without_growth();
    append_last_logits(rig, "younger", got);
    const Sequence* sequence = rig.sequence("younger");
    if (sequence == nullptr || sequence->record.number == 0) continue;
    if (rig.outcome("younger").preemptions.empty()) continue;
    const auto bytes = rig.bytes_of(lease, sequence->blocks.record_blocks());
    const Result<SequenceRecord> record = read_record(bytes, rig.config().n_context);
    REQUIRE(record);
    REQUIRE(record->tokens == sequence->tokens);
    REQUIRE(record->prompt_tokens == sequence->request.prompt.size());
    REQUIRE(std::ranges::equal(record->blocks, sequence->blocks.blocks()));
    ++records;
  }
  CHECK_FALSE(rig.outcome("younger").preemptions.empty());
  CHECK(records > 3);
  CHECK(rig.outcome("younger").tokens == calm.outcome("younger").tokens);
  CHECK(same_bits(got, expected));
}

}  // namespace leasehold::testing

#include "tests/property/tight_workload.hpp"

#include <algorithm>

#include "worker/kv/sequence_record.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kTightTokens = 40;

RigOptions tight_options(std::uint32_t kv_blocks, const std::string& model, GateProbe* probe,
                         BackendUnderTest backend, std::uint32_t swap_blocks) {
  static const std::size_t block = EngineRig().engine().kv_block_size_bytes();
  RigOptions options = backend.options();
  options.model_path = model;
  options.limits = {.max_batch_size = 8, .token_budget = 40, .speculate = backend.speculate};
  options.extent_bytes = kv_blocks * block;
  options.swap_extent_bytes = swap_blocks * block;
  options.probe = probe;
  if (backend.drafts) options.draft_path = bundled_model_path();
  return options;
}

}  // namespace

const std::vector<TightKind>& tight_kinds() {
  static const std::vector<TightKind> kinds{
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

// -------------------------------------------------------------------------------------- the rig

TightRig::TightRig(std::uint32_t kv_blocks, const std::string& model, GateProbe* probe,
                   BackendUnderTest backend, std::uint32_t swap_blocks)
    : EngineRig(tight_options(kv_blocks, model, probe, backend, swap_blocks)) {}

PromptRequest TightRig::request_of(const TightKind& kind, const std::string& tenant, LeaseId lease,
                                   const std::string& id) {
  PromptRequest request = EngineRig::request(tenant, lease, id, encode(kind.text), kTightTokens);
  if (kind.is_poisoned) request.prompt.push_back(kPoisonedTight);
  request.sampling = kind.sampling;
  const auto grammar = compile_grammar(kind.sampling.grammar);
  REQUIRE(grammar);
  if (*grammar) request.constraint = {*grammar, vocabulary()};
  return request;
}

StepReport TightRig::step_without_growth(const AnswerSwap& answer_swap) {
  for (const GrowthRequest& growth : engine().take_growth_requests()) {
    const bool is_swap = growth.pool == wire::MemoryPool::Swap;
    const SwapAnswer answer = is_swap && answer_swap ? answer_swap(growth) : SwapAnswer::Refuse;
    if (answer == SwapAnswer::Lend) grow(growth.lease, 1, wire::MemoryPool::Swap);
    if (answer == SwapAnswer::Refuse) engine().deny_growth(growth);
  }
  Result<StepReport> report = step();
  REQUIRE(report);
  return *std::move(report);
}

std::uint32_t TightRig::blocks(std::uint32_t kv_blocks, std::uint32_t records) {
  static const std::uint32_t of_record = [] {
    const EngineRig rig;
    return record_block_count({rig.config().n_context}, rig.engine().kv_block_size_bytes());
  }();
  return kv_blocks + records * of_record;
}

std::shared_ptr<const GrammarVocabulary> TightRig::vocabulary() {
  if (!vocabulary_) vocabulary_ = std::make_shared<const GrammarVocabulary>(tokenizer());
  return vocabulary_;
}

TightAnswer tight_answer_of(const RequestOutcome& outcome) {
  REQUIRE(outcome.completions.size() == 1);
  const Completed& end = outcome.completions[0];
  return {outcome.tokens, end.reason, end.error ? std::optional(end.error->code) : std::nullopt};
}

std::vector<TightAnswer> tight_answers_alone(const std::string& model) {
  std::vector<TightAnswer> answers;
  for (const TightKind& kind : tight_kinds()) {
    TightRig rig(100, model);
    REQUIRE(rig.submit(rig.request_of(kind, "t", rig.grant("t"), "r")));
    rig.run();
    REQUIRE(rig.outcome("r").preemptions.empty());
    answers.push_back(tight_answer_of(rig.outcome("r")));
  }
  return answers;
}

// --------------------------------------------------------------------------------- the workload

TightWorkload::TightWorkload(std::uint64_t seed, const std::string& model,
                             std::vector<TightAnswer> expected, bool lends_swap,
                             std::uint32_t swap_blocks)
    : random_(seed),
      lends_swap_(lends_swap),
      rig_(TightRig::blocks(9, 3), model, lends_swap ? &clock_ : nullptr,
           {.speculate = seed % 2 == 0 ? 5u : 0u, .drafts = seed % 4 == 0}, swap_blocks),
      expected_(std::move(expected)) {
  if (lends_swap) clock_.drive(rig_.clock());
  for (const char* tenant : {"a", "b"}) leases_[tenant] = rig_.grant(tenant);
}

void TightWorkload::lend_spill(SpillRig& spill) {
  spill_ = &spill;
  spill.lend_to(rig_.engine());
}

void TightWorkload::operate() {
  const std::uint64_t what = random_.below(20);
  if (what < 6 && open_.size() < 12) submit();
  if (what == 6) cancel();
  if (what == 7 && random_.below(4) == 0) revoke();
  if (what == 8 && lends_swap_) reclaim_swap();
  advance();
}

void TightWorkload::finish() {
  for (int i = 0; i < 10'000 && !open_.empty(); ++i) advance();
  REQUIRE(open_.empty());
  REQUIRE_FALSE(rig_.engine().scheduler().has_work());
  REQUIRE(rig_.engine().scheduler().transfers().empty());
  if (spill_ != nullptr) spill_->finish(rig_.engine());
  for (const auto& [lease, tenancy] : rig_.engine().scheduler().tenancies()) {
    REQUIRE(tenancy.pool.held_blocks() == tenancy.prefixes.unused());
    REQUIRE(tenancy.swap.held_blocks() == 0);
  }
}

void TightWorkload::submit() {
  const std::string id = "r" + std::to_string(++ids_);
  const std::string tenant = random_.below(2) == 0 ? "a" : "b";
  // A numeric fault is rare, because its request leaves nothing in the cache.
  std::size_t kind = random_.below(expected_.size());
  if (tight_kinds()[kind].is_poisoned && random_.below(3) != 0) kind = 0;
  open_[id] = {.kind = kind, .tenant = tenant};
  REQUIRE(rig_.submit(request(id)));
}

PromptRequest TightWorkload::request(const std::string& id) {
  const Open& open = open_.at(id);
  return rig_.request_of(tight_kinds()[open.kind], open.tenant, leases_[open.tenant], id);
}

bool TightWorkload::was_preempted(const std::string& id) {
  return rig_.sequence(id) == nullptr && !rig_.outcome(id).preemptions.empty();
}

bool TightWorkload::is_swapped(const std::string& id) {
  return rig_.is_swapped(leases_[open_.at(id).tenant], id);
}

void TightWorkload::cancel() {
  if (open_.empty()) return;
  auto which = std::next(open_.begin(), static_cast<long>(random_.below(open_.size())));
  if (was_preempted(which->first)) ++cancelled_waiting;
  if (is_swapped(which->first)) ++cancelled_swapped;
  if (has_spill(which->first)) ++cancelled_spilled;
  which->second.is_cancelled = true;
  REQUIRE(rig_.engine().cancel(RequestId{which->first}));
}

void TightWorkload::revoke() {
  const std::string tenant = random_.below(2) == 0 ? "a" : "b";
  for (const auto& [id, open] : open_) {
    if (open.tenant != tenant) continue;
    if (was_preempted(id)) ++revoked_waiting;
    if (is_swapped(id)) ++revoked_swapped;
    if (has_spill(id)) ++revoked_spilled;
  }
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

bool TightWorkload::has_spill(const std::string& id) {
  if (const Sequence* running = rig_.sequence(id))
    return running->blocks.state() == KvState::Returning;
  const Tenancy& tenancy = rig_.engine().scheduler().tenancies().at(leases_[open_.at(id).tenant]);
  const auto found = tenancy.swapped.find(RequestId{id});
  return found != tenancy.swapped.end() &&
         rig_.engine().scheduler().spill().tracker().has(*found->second);
}

void TightWorkload::reclaim_swap() {
  const LeaseId lease = leases_[random_.below(2) == 0 ? "a" : "b"];
  reclaimed_swap += rig_.engine().reclaim_extents(lease, 1, wire::MemoryPool::Swap).size();
}

/// One extent holds about half of what a lease preempts.
TightRig::SwapAnswer TightWorkload::answer_swap(const GrowthRequest& growth) {
  if (!lends_swap_) return TightRig::SwapAnswer::Refuse;
  const Tenancy& tenancy = rig_.engine().scheduler().tenancies().at(growth.lease);
  if (tenancy.swap.total_blocks() > 0) return TightRig::SwapAnswer::Refuse;
  return static_cast<TightRig::SwapAnswer>(random_.below(3));
}

void TightWorkload::advance() {
  if (spill_ != nullptr) spill_->work(random_);
  const StepReport report =
      rig_.step_without_growth([this](const GrowthRequest& growth) { return answer_swap(growth); });
  for (const SpillEvent& event : report.spills) ++spills[event.kind];
  for (auto each = open_.begin(); each != open_.end();)
    each = settle(each->first, each->second) ? open_.erase(each) : std::next(each);
  if (++steps_ % 500 == 0 && open_.empty()) rig_.clear_outcomes();
}

/// True when the request has ended, as it ends with plenty of memory.
bool TightWorkload::settle(const std::string& id, const Open& open) {
  const RequestOutcome& outcome = rig_.outcome(id);
  REQUIRE(outcome.rejections.empty());
  for (std::uint32_t i = 0; i < outcome.positions.size(); ++i) REQUIRE(outcome.positions[i] == i);
  if (outcome.completions.empty()) return false;
  CAPTURE(id, open.kind);
  const TightAnswer& expected = expected_[open.kind];
  const TightAnswer got = tight_answer_of(outcome);
  const auto was_swapped = [](const Preempted& each) { return each.swapped_blocks > 0; };
  const auto swaps = static_cast<int>(std::ranges::count_if(outcome.preemptions, was_swapped));
  preempted += static_cast<int>(outcome.preemptions.size());
  swapped += swaps;
  if (!outcome.preemptions.empty()) preempted_kinds.insert(open.kind);
  if (open.is_cancelled && got.reason == CompletionReason::Cancelled) {
    REQUIRE(got.tokens.size() <= expected.tokens.size());
    REQUIRE(std::ranges::equal(got.tokens, std::span(expected.tokens).first(got.tokens.size())));
    return true;
  }
  REQUIRE(got == expected);
  ++(got.error ? faults : completed);
  if (!got.error && swaps > 0) ++completed_swapped;
  return true;
}

}  // namespace leasehold::testing

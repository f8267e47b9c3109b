#include "tests/property/recovery_workload.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <utility>

#include "worker/kv/record_layout.hpp"
#include "worker/kv/sequence_record.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kOpenTexts = 5;
constexpr std::size_t kUndisturbedTexts = 48;
constexpr std::uint32_t kMostPrompt = 40;
constexpr std::uint32_t kMostTokens = 80;
/// Of a lease: the longest text fits, and two long ones do not.
constexpr std::uint32_t kLeaseBlocks = 9;
constexpr std::uint32_t kLeaseRecords = 2;
constexpr Duration kStepTime = std::chrono::milliseconds(50);

std::size_t lease_bytes(const std::string& model) {
  const EngineRig rig({.model_path = model});
  const std::uint64_t block = rig.engine().kv_block_size_bytes();
  return block *
         (kLeaseBlocks + kLeaseRecords * record_block_count({rig.config().n_context}, block));
}

SamplingParams random_sampling(SeededRandom& random) {
  SamplingParams sampling{.ignore_eos = true};
  if (random.below(4) == 0) return sampling;
  sampling.temperature = 1.0f;
  sampling.seed = random();
  if (random.below(3) == 0) sampling.top_k = 40;
  if (random.below(3) == 0) {
    sampling.repetition_penalty = 1.3f;
    sampling.penalty_window = 20;
  }
  return sampling;
}

}  // namespace

std::string_view name(Recovery recovery) {
  switch (recovery) {
    case Recovery::Revoked:
      return "Revoked";
    case Recovery::RevokedInStep:
      return "RevokedInStep";
    case Recovery::Preemptive:
      return "Preemptive";
    case Recovery::Checkpoint:
      return "Checkpoint";
    case Recovery::OldLeaseLost:
      return "OldLeaseLost";
    case Recovery::NewLeaseLost:
      return "NewLeaseLost";
    case Recovery::Adopted:
      return "Adopted";
    case Recovery::AdoptedInStep:
      return "AdoptedInStep";
    case Recovery::AdoptedTorn:
      return "AdoptedTorn";
    case Recovery::HolderLost:
      return "HolderLost";
    case Recovery::WeightsLost:
      return "WeightsLost";
    case Recovery::RebindRefused:
      return "RebindRefused";
  }
  return "Unknown";
}

std::vector<UndisturbedText> undisturbed_texts(const std::string& model) {
  SeededRandom random(5);
  EngineRig rig({.model_path = model});
  std::vector<UndisturbedText> texts(kUndisturbedTexts);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    UndisturbedText& text = texts[i];
    text.prompt.resize(1 + random.below(kMostPrompt));
    for (TokenId& token : text.prompt)
      token = static_cast<TokenId>(random.below(rig.config().n_vocab));
    text.sampling = random_sampling(random);
    const LeaseId lease = rig.grant("t");
    const std::string id = std::to_string(i);
    PromptRequest request = rig.request("t", lease, id, text.prompt, kMostTokens);
    request.sampling = text.sampling;
    REQUIRE(rig.submit(request));
    rig.run();
    text.tokens = rig.outcome(id).tokens;
    REQUIRE(text.tokens.size() == kMostTokens);
    rig.drop(lease);
  }
  return texts;
}

RecoveryWorkload::RecoveryWorkload(std::uint64_t seed, const std::string& model,
                                   const std::vector<UndisturbedText>& undisturbed)
    : random_(seed),
      extent_bytes_(lease_bytes(model)),
      rig_({.model_path = model,
            .limits = {.max_batch_size = 8, .token_budget = 40},
            .extent_bytes = extent_bytes_,
            .probe = &trigger_}),
      undisturbed_(&undisturbed) {}

void RecoveryWorkload::run(std::uint64_t texts) {
  const std::uint64_t most_steps = 1000 * (texts + kOpenTexts);
  for (std::uint64_t steps = 0; started_ < texts || !open_.empty(); ++steps) {
    REQUIRE(steps < most_steps);
    while (open_.size() < kOpenTexts && started_ < texts) start();
    for (Text& text : open_) disturb(text);
    step();
    if (std::exchange(weights_go_after_step_, false)) revoke(rig_.engine_lease());
    std::erase_if(open_, [this](Text& text) { return settle(text); });
    drop_unused_leases();
  }
  trigger_.disarm();
  REQUIRE(leases_.empty());
  REQUIRE_FALSE(rig_.engine().scheduler().has_work());
}

// ------------------------------------------------------------------------------------ the texts

bool RecoveryWorkload::is_live(LeaseId lease) const {
  const LeaseWord word = rig_.table().word_of(lease);
  return word.generation() == lease.generation && word.state() == LeaseState::Live;
}

/// Does nothing for a lease that has ended.
bool RecoveryWorkload::revoke(LeaseId lease, RevokeReason reason) {
  if (!is_live(lease)) return false;
  rig_.revoke(lease, reason);
  return true;
}

LeaseId RecoveryWorkload::grant() {
  const LeaseId lease = rig_.grant("t");
  leases_.insert(lease);
  return lease;
}

std::vector<RecoveryWorkload::Text*> RecoveryWorkload::texts_on(LeaseId lease) {
  std::vector<Text*> found;
  for (Text& text : open_)
    if (text.lease == lease) found.push_back(&text);
  return found;
}

PromptRequest RecoveryWorkload::request_of(const Text& text) const {
  PromptRequest request =
      rig_.request("t", text.lease, text.id, text.undisturbed->prompt, text.length);
  request.sampling = text.undisturbed->sampling;
  request.emitted = text.delivered;
  return request;
}

void RecoveryWorkload::start() {
  Text text{.undisturbed = &(*undisturbed_)[random_.below(undisturbed_->size())],
            .length = static_cast<std::uint32_t>(1 + random_.below(kMostTokens)),
            .id = "t/r" + std::to_string(started_++),
            .disturbances_left = 1 + random_.below(5)};
  text.steps_to_wait = random_.below(text.length + 2);
  const bool joins = !open_.empty() && random_.below(2) == 0 && is_live(open_.back().lease);
  text.lease = joins ? open_.back().lease : grant();
  REQUIRE(rig_.submit(request_of(text)));
  open_.push_back(std::move(text));
}

/// Memory never grows, so two long texts of a lease run one after the other.
void RecoveryWorkload::step() {
  rig_.clock().advance(kStepTime);
  for (const GrowthRequest& growth : rig_.engine().take_growth_requests())
    rig_.engine().deny_growth(growth);
  const Result<StepReport> report = rig_.step();
  if (!report) {
    const Errc code = report.error().code;
    REQUIRE((code == Errc::EngineDecodeFailed || code == Errc::WeightsLoading));
    restore_weights();
  }
  for (Text& text : open_) deliver(text);
}

void RecoveryWorkload::restore_weights() {
  REQUIRE(rig_.restore_weights() > 0);
  note(Recovery::WeightsLost);
}

void RecoveryWorkload::deliver(Text& text) {
  const RequestOutcome& outcome = rig_.outcome(text.id);
  for (; text.read < outcome.tokens.size(); ++text.read) {
    const std::size_t next = text.delivered.size();
    const std::uint32_t position = outcome.positions[text.read];
    const bool is_right = position == next && next < text.length &&
                          outcome.tokens[text.read] == text.undisturbed->tokens[next];
    if (!is_right) {
      CAPTURE(text.id, text.length, next, position, text.delivered_at_last);
      FAIL("another token than that of the undisturbed text, after "
           << (text.last ? name(*text.last) : "nothing"));
    }
    text.delivered.push_back(outcome.tokens[text.read]);
  }
}

/// True when the text has ended.
bool RecoveryWorkload::settle(Text& text) {
  const RequestOutcome& outcome = rig_.outcome(text.id);
  const std::size_t ends = outcome.completions.size() + outcome.rejections.size();
  if (ends == 0) return false;
  REQUIRE(ends == 1);
  if (!outcome.completions.empty()) {
    const CompletionReason reason = outcome.completions.front().reason;
    CAPTURE(text.id, name(reason));
    if (reason == CompletionReason::MaxTokensReached) {
      REQUIRE(text.delivered.size() == text.length);
      if (!outcome.preemptions.empty()) ++preempted;
      if (text.last) ++disturbed_texts;
      return true;
    }
    REQUIRE((reason == CompletionReason::Revoked || reason == CompletionReason::LeaseFenced));
  }
  REQUIRE_FALSE(is_live(text.lease));
  resubmit(text);
  return false;
}

void RecoveryWorkload::resubmit(Text& text) {
  rig_.outcome(text.id).completions.clear();
  rig_.outcome(text.id).rejections.clear();
  const LeaseId old = text.lease;
  const auto next = std::exchange(text.next_lease, std::nullopt);
  text.lease = next && is_live(*next) ? *next : grant();
  const bool is_new_process = text.kept.has_value();
  if (is_new_process) {
    text.delivered.resize(*std::exchange(text.kept, std::nullopt));
    text.id += "-" + std::to_string(++restarts_);
    text.read = 0;
  }
  PromptRequest request = request_of(text);
  if (!is_new_process) request.rebound_from = old;
  Result<void> submitted = rig_.submit(request);
  if (!submitted) {
    CAPTURE(submitted.error().detail);
    REQUIRE(submitted.error().code == Errc::EngineLeaseFenced);
    note(Recovery::RebindRefused);
    restore_weights();
    submitted = rig_.submit(request);
  }
  REQUIRE(submitted);
}

/// All of a lease's blocks are free or cached when its last text is gone.
void RecoveryWorkload::drop_unused_leases() {
  std::erase_if(leases_, [this](LeaseId lease) {
    const auto uses = [lease](const Text& text) {
      return text.lease == lease || text.next_lease == lease;
    };
    if (std::ranges::any_of(open_, uses)) return false;
    const auto& tenancies = rig_.engine().scheduler().tenancies();
    const auto tenancy = tenancies.find(lease);
    REQUIRE((tenancy != tenancies.end() || !is_live(lease)));
    if (tenancy != tenancies.end()) {
      REQUIRE(tenancy->second.running == 0);
      REQUIRE(tenancy->second.waiting.empty());
      REQUIRE(tenancy->second.pool.held_blocks() == tenancy->second.prefixes.unused());
    }
    rig_.drop(lease);
    return true;
  });
}

// ------------------------------------------------------------------------------- the disturbances

void RecoveryWorkload::disturb(Text& text) {
  if (text.disturbances_left == 0 || text.steps_to_wait-- > 0) return;
  --text.disturbances_left;
  text.steps_to_wait = random_.below(4) == 0 ? random_.below(3) : random_.below(30);
  if (text.last && text.delivered.size() == text.delivered_at_last) ++disturbed_again;
  const auto recovery = static_cast<Recovery>(random_.below(kRecoveries));
  for (Text* each : texts_on(text.lease)) {
    each->last = recovery;
    each->delivered_at_last = each->delivered.size();
  }
  strike(text, recovery);
}

void RecoveryWorkload::strike(Text& text, Recovery recovery) {
  const LeaseId lease = text.lease;
  switch (recovery) {
    case Recovery::Revoked:
      if (revoke(lease)) note(recovery);
      return;
    case Recovery::RevokedInStep:
      return trigger_.arm(random_.below(200), [this, lease] {
        if (revoke(lease)) note(Recovery::RevokedInStep);
      });
    case Recovery::Preemptive:
    case Recovery::Checkpoint:
    case Recovery::OldLeaseLost:
    case Recovery::NewLeaseLost:
      return is_live(lease) ? replace(lease, recovery) : void();
    case Recovery::Adopted:
    case Recovery::AdoptedInStep:
    case Recovery::AdoptedTorn:
      return adopt(text, recovery);
    case Recovery::HolderLost:
      return end_holder(lease);
    case Recovery::WeightsLost:
      if (random_.below(2) == 0) return void(revoke(rig_.engine_lease()));
      return trigger_.arm(random_.below(200), [this] { revoke(rig_.engine_lease()); });
    case Recovery::RebindRefused:
      revoke(lease);
      weights_go_after_step_ = true;
      return;
  }
}

/// Moves the texts of a lease to a new one. Those that cannot move go on where they are, or are
/// submitted again under the new lease.
void RecoveryWorkload::replace(LeaseId old, Recovery recovery) {
  const LeaseId fresh = grant();
  if (recovery != Recovery::Preemptive)
    rig_.set_drain_deadline(old, rig_.clock().now() + std::chrono::seconds(10));
  const auto lose = [&](LeaseId lost) {
    trigger_.arm(
        random_.below(3),
        [this, lost, recovery] {
          revoke(lost);
          note(recovery);
        },
        /*only_copies=*/true);
  };
  if (recovery == Recovery::OldLeaseLost) lose(old);
  if (recovery == Recovery::NewLeaseLost) lose(fresh);
  for (Text* text : texts_on(old)) {
    text->next_lease = fresh;
    if (!rig_.engine().move(RequestId{text->id}, fresh, rig_.clock().now())) continue;
    text->lease = fresh;
    text->next_lease.reset();
    if (recovery == Recovery::Preemptive || recovery == Recovery::Checkpoint) note(recovery);
  }
  trigger_.disarm();
  revoke(old, RevokeReason::DrainDeadline);
}

/// A worker that dies at a unit leaves memory as its last commit left it.
void RecoveryWorkload::adopt(Text& text, Recovery recovery) {
  const LeaseId old = text.lease;
  if (!is_live(old)) return;
  if (recovery == Recovery::AdoptedTorn) damage_record(text);
  if (recovery == Recovery::AdoptedInStep) {
    trigger_.arm(random_.below(100), [this, old] { revoke(old, RevokeReason::WorkerGone); });
    step();
    trigger_.disarm();
  }
  const auto [fresh, adopted] = rig_.adopt(old, "t");
  leases_.erase(old);
  leases_.insert(fresh);
  for (Text* each : texts_on(old)) each->next_lease = fresh;
  if (recovery == Recovery::AdoptedTorn ? !adopted.dropped.empty() : adopted.records > 0)
    note(recovery);
  if (recovery == Recovery::AdoptedTorn || adopted.dropped.empty()) return;
  FAIL("an undamaged record was dropped: " << adopted.dropped.front().detail);
}

void RecoveryWorkload::damage_record(const Text& text) {
  const Sequence* sequence = rig_.sequence(text.id);
  if (sequence == nullptr || sequence->blocks.record_blocks().empty()) return;
  const BlockId at = sequence->blocks.record_blocks().front();
  const Mapping memory =
      Mapping::map(rig_.extents(text.lease).at(at.extent).fd(), extent_bytes_, MapAccess::ReadWrite)
          .value();
  std::byte* record = memory.data() + at.index * rig_.engine().kv_block_size_bytes();
  const std::uint64_t wrong = random_();
  std::memcpy(record + 8 * random_.below(kTokensOffset / 8), &wrong, sizeof wrong);
}

/// The next holder knows a part of what was delivered to the one that died.
void RecoveryWorkload::end_holder(LeaseId lease) {
  revoke(lease, RevokeReason::HolderGone);
  for (Text* text : texts_on(lease)) {
    const std::size_t known = std::min(text->delivered.size(), text->kept.value_or(SIZE_MAX));
    text->kept = random_.below(known + 1);
    if (*text->kept == 0 && known > 0) ++restarted_at_start;
  }
  note(Recovery::HolderLost);
}

}  // namespace leasehold::testing

/// Requests of many kinds under leases of a few blocks, which hold the longest one and not two of
/// them, and the answers that each kind gets with plenty of memory.
#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>

#include "common/random.hpp"
#include "tests/property/four_tenants.hpp"
#include "tests/property/spill_rig.hpp"

namespace leasehold::testing {

inline constexpr TokenId kPoisonedTight = 444;  ///< Its embedding is not finite.

struct TightKind {
  const char* text = "";
  SamplingParams sampling;
  bool is_poisoned = false;
};
const std::vector<TightKind>& tight_kinds();

/// The broker lends no KV memory beyond the first extent.
class TightRig : public EngineRig {
 public:
  /// `swap_blocks` is the size of an extent of swap; 0: as of KV memory.
  explicit TightRig(std::uint32_t kv_blocks, const std::string& model = bundled_model_path(),
                    GateProbe* probe = nullptr, BackendUnderTest backend = {},
                    std::uint32_t swap_blocks = 0);

  PromptRequest request_of(const TightKind& kind, const std::string& tenant, LeaseId lease,
                           const std::string& id);

  /// What the broker does with a request for swap: lends it, refuses it, or has not answered yet.
  enum class SwapAnswer { Lend, Refuse, Later };
  using AnswerSwap = std::function<SwapAnswer(const GrowthRequest&)>;
  StepReport step_without_growth(const AnswerSwap& answer_swap = {});

  bool is_swapped(LeaseId lease, const std::string& id) const {
    return engine().scheduler().tenancies().at(lease).swapped.contains(RequestId{id});
  }

  /// KV blocks, with the records of `records` sequences.
  static std::uint32_t blocks(std::uint32_t kv_blocks, std::uint32_t records);

 private:
  std::shared_ptr<const GrammarVocabulary> vocabulary();

  std::shared_ptr<const GrammarVocabulary> vocabulary_;
};

struct TightAnswer {
  std::vector<TokenId> tokens;
  CompletionReason reason{};
  std::optional<Errc> error;
  bool operator==(const TightAnswer&) const = default;
};
/// Precondition: the request has ended.
TightAnswer tight_answer_of(const RequestOutcome& outcome);

/// What each kind of request gets with plenty of memory.
std::vector<TightAnswer> tight_answers_alone(const std::string& model);

/// Each unit takes a microsecond, and each row of a step as much as `row_time` says: on a card the
/// units of a step are as many for one row as for all.
class UnitClock final : public GateProbe {
 public:
  using RowTime = std::function<Duration()>;
  void drive(ManualClock& clock, RowTime row_time = {}) {
    clock_ = &clock;
    row_time_ = std::move(row_time);
  }
  /// Calls `act` at the BlockCopy unit `at`, counted from 0 since the start.
  void act_at_copy(int at, std::function<void()> act) {
    act_at_ = at;
    act_ = std::move(act);
  }
  void unit_polled(std::uint32_t, LaunchSite site, std::uint16_t, SequenceMask) override {
    if (clock_ != nullptr) clock_->advance(std::chrono::microseconds(1));
    if (row_time_ && site == LaunchSite::Embedding) clock_->advance(row_time_());
    if (site == LaunchSite::BlockCopy && units(site) == act_at_) act_();
    ++units_[static_cast<std::size_t>(site)];
  }
  int units(LaunchSite site) const { return units_[static_cast<std::size_t>(site)]; }

 private:
  ManualClock* clock_ = nullptr;
  RowTime row_time_;
  int act_at_ = -1;
  std::function<void()> act_;
  std::array<int, kLaunchSiteCount> units_ = {};
};

/// Random submits, cancels and revocations of two tenants whose KV memory never grows. Each request
/// ends as with plenty of memory.
class TightWorkload {
 public:
  /// With `lends_swap` the broker lends swap at times, and each unit takes a microsecond. Tokens
  /// are proposed for even seeds, by a draft model for those that four divides.
  TightWorkload(std::uint64_t seed, const std::string& model, std::vector<TightAnswer> expected,
                bool lends_swap = false, std::uint32_t swap_blocks = 0);

  /// Lends a spill file, too, whose store `spill` runs at random times.
  void lend_spill(SpillRig& spill);

  void operate();
  /// Also checks that every block is free or cached.
  void finish();

  std::uint64_t proposed() const {
    return rig_.engine().scheduler().proposals().counters().proposed;
  }

  int completed = 0;
  int faults = 0;
  int cancelled_waiting = 0;
  int revoked_waiting = 0;
  int preempted = 0;
  int swapped = 0;            ///< Of `preempted`.
  int cancelled_swapped = 0;  ///< Of `cancelled_waiting`.
  int revoked_swapped = 0;    ///< Of `revoked_waiting`.
  int completed_swapped = 0;  ///< Of `completed`.
  std::size_t reclaimed_swap = 0;
  std::set<std::size_t> preempted_kinds;
  std::map<SpillEvent::Kind, int> spills;
  int cancelled_spilled = 0;  ///< While blocks were in the file, or on their way.
  int revoked_spilled = 0;

 private:
  struct Open {
    std::size_t kind = 0;
    std::string tenant;
    bool is_cancelled = false;
  };

  void submit();
  PromptRequest request(const std::string& id);
  bool was_preempted(const std::string& id);
  bool is_swapped(const std::string& id);
  void cancel();
  void revoke();
  bool has_spill(const std::string& id);
  void reclaim_swap();
  void advance();
  bool settle(const std::string& id, const Open& open);
  TightRig::SwapAnswer answer_swap(const GrowthRequest& growth);

  SeededRandom random_;
  bool lends_swap_;
  UnitClock clock_;
  TightRig rig_;
  SpillRig* spill_ = nullptr;
  std::vector<TightAnswer> expected_;
  std::map<std::string, LeaseId> leases_;
  std::map<std::string, Open> open_;
  std::uint64_t ids_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace leasehold::testing

/// Texts that are disturbed at random times, and continued as their clients continue them.
///
/// A text runs under a lease of its own or shares one with another text. A disturbance strikes its
/// lease, the process that holds it, or the weights; the next one may come before a token.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {

/// What a text meets, and how it goes on.
enum class Recovery : std::uint8_t {
  Revoked,        ///< Between two steps; submitted again.
  RevokedInStep,  ///< At a unit; submitted again.
  Preemptive,     ///< Moved to a new lease while the old one is live.
  Checkpoint,     ///< Moved out of a draining lease.
  OldLeaseLost,   ///< The old lease is revoked during the move.
  NewLeaseLost,   ///< The new lease is revoked during the move.
  Adopted,        ///< The memory is adopted under a new lease.
  AdoptedInStep,  ///< The same, after an end at a unit.
  AdoptedTorn,    ///< The same, with a record that is damaged and dropped.
  HolderLost,     ///< Another process continues from a part of the delivered text.
  WeightsLost,    ///< The step fails; the weights return under a new lease.
  RebindRefused,  ///< A rebind comes while the weights are lost.
};
inline constexpr std::size_t kRecoveries = 12;
std::string_view name(Recovery recovery);

/// A request, and its text when nothing disturbs it.
struct UndisturbedText {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  std::vector<TokenId> tokens;
};
std::vector<UndisturbedText> undisturbed_texts(const std::string& model);

/// Acts once, at the n-th unit from now.
class UnitTrigger final : public GateProbe {
 public:
  void arm(std::uint64_t units, std::function<void()> act, bool only_copies = false) {
    left_ = units + 1;
    act_ = std::move(act);
    only_copies_ = only_copies;
  }
  void disarm() { left_ = 0; }
  void unit_polled(std::uint32_t, LaunchSite site, std::uint16_t, SequenceMask) override {
    if (left_ == 0 || (only_copies_ && site != LaunchSite::BlockCopy)) return;
    if (--left_ == 0) act_();
  }

 private:
  std::uint64_t left_ = 0;  // 0: not armed
  bool only_copies_ = false;
  std::function<void()> act_;
};

class RecoveryWorkload {
 public:
  /// The model and the texts outlive it.
  RecoveryWorkload(std::uint64_t seed, const std::string& model,
                   const std::vector<UndisturbedText>& undisturbed);

  /// Starts `texts` texts, a few at a time, and runs until all have ended. Checks each token when
  /// it is delivered, each text when it ends, and the blocks of each lease when it is dropped.
  void run(std::uint64_t texts);

  std::uint64_t reached(Recovery recovery) const {
    return reached_[static_cast<std::size_t>(recovery)];
  }
  std::uint64_t disturbed_texts = 0;     ///< That ended.
  std::uint64_t disturbed_again = 0;     ///< Disturbances before the first token since the last.
  std::uint64_t preempted = 0;           ///< Texts that waited for the blocks of others, too.
  std::uint64_t restarted_at_start = 0;  ///< Of HolderLost: nothing of the text was kept.

 private:
  struct Text {
    const UndisturbedText* undisturbed = nullptr;
    std::uint32_t length = 0;
    std::string id;
    LeaseId lease;
    std::vector<TokenId> delivered;
    std::size_t read = 0;               // tokens of the outcome of `id`
    std::optional<LeaseId> next_lease;  // that it continues under
    std::optional<std::size_t> kept;    // tokens that its next holder knows
    std::uint64_t steps_to_wait = 0;    // until the next disturbance
    std::uint64_t disturbances_left = 0;
    std::optional<Recovery> last;
    std::size_t delivered_at_last = 0;
  };

  bool is_live(LeaseId lease) const;
  bool revoke(LeaseId lease, RevokeReason reason = RevokeReason::Operator);
  LeaseId grant();
  std::vector<Text*> texts_on(LeaseId lease);
  PromptRequest request_of(const Text& text) const;
  void start();
  void step();
  void disturb(Text& text);
  void strike(Text& text, Recovery recovery);
  void replace(LeaseId old, Recovery recovery);
  void adopt(Text& text, Recovery recovery);
  void damage_record(const Text& text);
  void end_holder(LeaseId lease);
  void deliver(Text& text);
  bool settle(Text& text);
  void resubmit(Text& text);
  void restore_weights();
  void drop_unused_leases();
  void note(Recovery recovery) { ++reached_[static_cast<std::size_t>(recovery)]; }

  SeededRandom random_;
  UnitTrigger trigger_;
  std::size_t extent_bytes_;
  EngineRig rig_;
  const std::vector<UndisturbedText>* undisturbed_;
  std::vector<Text> open_;
  std::set<LeaseId> leases_;
  bool weights_go_after_step_ = false;
  std::uint64_t started_ = 0;
  std::uint64_t restarts_ = 0;
  std::array<std::uint64_t, kRecoveries> reached_ = {};
};

}  // namespace leasehold::testing

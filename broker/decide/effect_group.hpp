/// Performs the effects of decisions, and writes the rows of many decisions in one transaction.
///
/// The rows of a decision and the effects behind them wait for `flush`, and with them all effects
/// of later decisions, so every effect keeps its place. What comes before the rows waits only
/// behind other decisions. Two things never wait: words that end leases and the watches that follow
/// them, because a revocation does not wait for the disk, and decisions that bind a worker, because
/// its connection holds what they bind only during the call.
///
/// A process that dies before `flush` has published nothing that it would have to know afterwards,
/// except words of ended leases, which recovery reads in the table. If it dies after the rows,
/// recovery stores the words that are behind them. Threads: one.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "broker/decide/effect.hpp"

namespace leasehold {

class EffectGroup {
 public:
  bool is_empty() const { return waiting_.empty(); }

  /// Takes the effects of one decision and performs those that need not wait.
  template <class Performer>
  void add(std::vector<Effect> effects, Performer& performer) {
    if (is_empty()) {
      const bool has_none = std::ranges::none_of(effects, has_rows);
      const auto rows = has_none ? effects.end() : std::ranges::find_if(effects, begins_rows);
      perform_all({effects.begin(), rows}, performer);
      effects.erase(effects.begin(), rows);
    }
    const bool binds = std::ranges::any_of(effects, binds_worker);
    for (Effect& each : effects) {
      if (is_urgent(each)) {
        perform_first(each, performer);
      } else {
        note_leases(each);
        waiting_.push_back(std::move(each));
      }
    }
    if (binds) flush(performer);
  }

  /// Writes all rows, then performs the effects. The performer's `write_together` takes the batches
  /// of all decisions and returns false if it wrote nothing: then each decision writes its own, as
  /// an effect in its place.
  template <class Performer>
  void flush(Performer& performer) {
    const std::vector<Effect> effects = std::exchange(waiting_, {});
    leases_.clear();
    std::vector<const journal::Batch*> batches;
    for (const Effect& each : effects) {
      if (is_creation(each)) perform_all({&each, 1}, performer);
      if (has_rows(each)) batches.push_back(&std::get<effect::Journal>(each).batch);
    }
    const bool are_written = batches.size() > 1 && performer.write_together(batches);
    for (const Effect& each : effects) {
      const bool is_done = is_creation(each) || (are_written && has_rows(each));
      if (!is_done) perform_all({&each, 1}, performer);
    }
  }

 private:
  static bool has_rows(const Effect& effect);
  /// The journal writes the identity of extents that are created directly before.
  static bool begins_rows(const Effect& effect) { return is_creation(effect) || has_rows(effect); }
  static bool is_creation(const Effect& effect);
  static bool binds_worker(const Effect& effect);
  static bool is_urgent(const Effect& effect);
  void note_leases(const Effect& effect);
  /// True if an effect that waits stores or sends something about a lease of this one.
  bool follows_waiting(const Effect& effect) const;

  /// Without a lease in common, the order of the two is not visible to any process.
  template <class Performer>
  void perform_first(const Effect& effect, Performer& performer) {
    if (follows_waiting(effect)) flush(performer);
    perform_all({&effect, 1}, performer);
  }

  std::vector<Effect> waiting_;
  std::set<LeaseId> leases_;  ///< Leases whose words, deadlines or grants wait.
};

}  // namespace leasehold

/// The memory that one lease asks the broker for, and the broker's refusals.
///
/// Invariant: blocks for a waiting request are requested only while no running sequence wants any,
/// because the broker lends either everything requested or nothing. A refusal of KV blocks counts
/// in one plan; a refusal of swap counts until the broker grants swap.
///
/// Pure. Threads: one (the engine's).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/errc.hpp"

namespace leasehold {

class LeaseGrowth {
 public:
  // ---- KV blocks

  /// A running sequence wants `blocks` more; the largest number counts.
  void want(std::uint32_t blocks) { running_ = std::max(running_, blocks); }
  void want_for_waiting(std::uint32_t blocks) { waiting_ = std::max(waiting_, blocks); }
  /// Blocks that running sequences want, as noted in this plan.
  std::uint32_t wanted() const { return running_; }
  /// Forgets what the running sequences wanted in the last plan.
  void begin_plan() { running_ = 0; }
  /// The blocks to request now; 0: none.
  std::uint32_t take_wanted() {
    const std::uint32_t running = std::exchange(running_, 0);
    const std::uint32_t waiting = std::exchange(waiting_, 0);
    return running > 0 ? running : waiting;
  }

  /// The broker refused a request for `blocks`. QuotaBlocks: because of the limit of the tenant or
  /// of published texts; any other code means an exhausted pool.
  void deny(std::uint32_t blocks, Errc why) {
    denied_ = blocks;
    is_at_quota_ = why == Errc::QuotaBlocks;
  }
  /// True when the refused request was not for more than `blocks`.
  bool is_denied(std::uint32_t blocks) const { return denied_ && *denied_ <= blocks; }
  /// Consumes the refusal. Returns true when the refused request was not for more blocks than the
  /// running sequences want.
  bool take_denial() {
    const bool is_denied_now = is_denied(running_);
    denied_.reset();
    return is_denied_now;
  }
  void forget_denial() { denied_.reset(); }
  /// The last refusal was about the tenant's limit, not the pool.
  bool is_at_quota() const { return is_at_quota_; }

  // ---- swap blocks

  void want_swap(std::uint32_t blocks) { swap_ = std::max(swap_, blocks); }
  std::uint32_t swap_wanted() const { return swap_; }
  std::uint32_t take_swap_wanted() { return std::exchange(swap_, 0); }
  void deny_swap() { is_swap_denied_ = true; }
  void grant_swap() { is_swap_denied_ = false; }
  /// The broker refused swap, and has not granted any since.
  bool is_swap_denied() const { return is_swap_denied_; }
  /// Nothing is wanted, no refusal of KV blocks counts, and no victim awaits swap.
  bool is_quiet() const {
    return running_ == 0 && waiting_ == 0 && swap_ == 0 && !denied_ && !awaits_swap_;
  }

  /// In this plan a victim keeps running until it has swap blocks, although KV growth was refused.
  void await_swap(bool awaits) { awaits_swap_ = awaits; }
  /// Call it in the next plan: if a victim awaited swap, the refusal of KV blocks counts again.
  void renew_denial() {
    if (std::exchange(awaits_swap_, false)) denied_ = 0;
  }

 private:
  std::uint32_t running_ = 0;
  std::uint32_t waiting_ = 0;
  std::uint32_t swap_ = 0;
  std::optional<std::uint32_t> denied_;  // size of the refused request, until the next plan
  bool is_at_quota_ = false;
  bool is_swap_denied_ = false;
  bool awaits_swap_ = false;
};

}  // namespace leasehold

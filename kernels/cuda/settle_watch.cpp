#include "kernels/cuda/settle_watch.hpp"

#include <algorithm>
#include <iterator>

namespace leasehold::cuda {
namespace {

/// Compares epochs that wrap.
bool is_at_or_after(std::uint32_t epoch, std::uint32_t other) {
  return static_cast<std::int32_t>(epoch - other) >= 0;
}

}  // namespace

void SettleWatch::when_settled(Callback callback, SettleScope scope) {
  if (lost_.load(std::memory_order_seq_cst)) return;
  std::unique_lock lock(mutex_);
  const std::uint64_t launches = last_of(scope);
  if (finished_.load(std::memory_order_seq_cst) >= launches) {
    lock.unlock();
    return callback();
  }
  waiters_.push_back({.number = ++newest_,
                      .scope = scope,
                      .launches = launches,
                      .epoch = std::nullopt,
                      .callback = std::move(callback)});
  waiting_.store(waiters_.size(), std::memory_order_seq_cst);
  // Pairs with `notify`: either `notify` sees this waiter, or this load sees the finished count
  // that `notify` acted on.
  if (finished_.load(std::memory_order_seq_cst) >= launches) {
    Callback mine = std::move(waiters_.back().callback);
    waiters_.pop_back();
    waiting_.store(waiters_.size(), std::memory_order_seq_cst);
    lock.unlock();
    return mine();
  }
  // Pairs with the launching thread, which reads `unstamped` before it reads the lease words.
  unstamped_.store(newest_, std::memory_order_seq_cst);
}

void SettleWatch::finished(std::uint64_t count) {
  finished_.store(count, std::memory_order_seq_cst);
  notify([count](const Waiter& waiter) { return waiter.launches <= count; });
}

void SettleWatch::seen(std::uint32_t epoch, SettleScope scope) {
  notify([epoch, scope](const Waiter& waiter) {
    const bool is_covered = scope == SettleScope::Everything || waiter.scope == scope;
    return is_covered && waiter.epoch && is_at_or_after(epoch, *waiter.epoch);
  });
}

void SettleWatch::stamp(std::uint64_t newest, std::uint32_t epoch) {
  const std::scoped_lock lock(mutex_);
  for (Waiter& waiter : waiters_) {
    if (!waiter.epoch && waiter.number <= newest) waiter.epoch = epoch;
  }
  if (newest == newest_) unstamped_.store(0, std::memory_order_seq_cst);
}

template <class IsDone>
void SettleWatch::notify(IsDone&& is_done) {
  // Pairs with when_settled, which publishes its waiter before it checks a second time.
  if (waiting_.load(std::memory_order_seq_cst) == 0) return;
  if (lost_.load(std::memory_order_seq_cst)) return;
  std::vector<Waiter> over;
  {
    const std::scoped_lock lock(mutex_);
    const auto first = std::stable_partition(waiters_.begin(), waiters_.end(),
                                             [&](const Waiter& w) { return !is_done(w); });
    over.assign(std::make_move_iterator(first), std::make_move_iterator(waiters_.end()));
    waiters_.erase(first, waiters_.end());
    waiting_.store(waiters_.size(), std::memory_order_seq_cst);
  }
  for (Waiter& waiter : over) waiter.callback();
}

}  // namespace leasehold::cuda

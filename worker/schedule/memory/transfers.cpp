#include "worker/schedule/memory/transfers.hpp"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <utility>

#include "common/expects.hpp"
#include "ipc/segment/gate_set.hpp"

namespace leasehold {

void Transfers::add(SwapTransfer transfer) {
  transfers_.push_back(std::move(transfer));
}

SwapTransfer Transfers::take(const Sequence& sequence) {
  const auto done = std::ranges::find(transfers_, &sequence, &SwapTransfer::sequence);
  expects(done != transfers_.end(), "a transfer is made once");
  SwapTransfer made = std::move(*done);
  transfers_.erase(done);
  return made;
}

std::vector<SwapTransfer> Transfers::drop(const Sequence& sequence) {
  const auto is_kept = [&](const SwapTransfer& each) { return each.sequence != &sequence; };
  const auto dropped = std::ranges::stable_partition(transfers_, is_kept);
  std::vector<SwapTransfer> removed(std::make_move_iterator(dropped.begin()),
                                    std::make_move_iterator(dropped.end()));
  transfers_.erase(dropped.begin(), dropped.end());
  return removed;
}

bool Transfers::has(const Sequence& sequence) const {
  return std::ranges::find(transfers_, &sequence, &SwapTransfer::sequence) != transfers_.end();
}

bool Transfers::has_of(LeaseId lease) const {
  return std::ranges::any_of(transfers_, [lease](const SwapTransfer& each) {
    return each.sequence->request.lease == lease;
  });
}

bool Transfers::is_gate_set_full() const {
  const auto leaving = std::ranges::count_if(
      transfers_, [this](const SwapTransfer& each) { return !running_.contains(each.sequence); });
  return running_.size() + static_cast<std::size_t>(leaving) >= kMaxStepSequences;
}

std::uint32_t Transfers::free_stop_slot() const {
  std::bitset<kMaxStepSequences> taken;
  for (const auto& sequence : running_) taken.set(sequence->stop_slot);
  for (const SwapTransfer& each : transfers_) taken.set(each.sequence->stop_slot);
  std::uint32_t stop_slot = 0;
  while (stop_slot < taken.size() && taken.test(stop_slot)) ++stop_slot;
  ensures(stop_slot < taken.size(), "at most kMaxStepSequences sequences run");
  return stop_slot;
}

}  // namespace leasehold

/// How owners share a bounded resource: an owner may take more while it holds less than what is
/// free in total. One owner alone gets half. Of n owners that take all they can, each gets 1/(n+1),
/// and as much stays free for an owner that comes later.
///
/// Source: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
/// Switches", 1998, with alpha = 1. Pure. Threads: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>

#include "common/expects.hpp"

namespace leasehold {

struct ResourceShare {
  std::size_t held = 0;      ///< Units that the owner holds.
  std::size_t taken = 0;     ///< Units that all owners hold together.
  std::size_t capacity = 0;  ///< Units of the resource.
};

/// True when the owner may take one unit more.
constexpr bool may_take_more(const ResourceShare& share) {
  return share.taken < share.capacity && share.held < share.capacity - share.taken;
}

/// Counts what each owner holds.
template <class Owner>
class FairShares {
 public:
  explicit FairShares(std::size_t capacity) : capacity_(capacity) {}

  bool may_take_more(const Owner& owner) const {
    return leasehold::may_take_more(
        {.held = held_by(owner), .taken = taken_, .capacity = capacity_});
  }
  void take(const Owner& owner, std::size_t amount = 1) {
    held_[owner] += amount;
    taken_ += amount;
  }
  /// Precondition: the owner holds at least `amount`.
  void give_back(const Owner& owner, std::size_t amount = 1) {
    const auto found = held_.find(owner);
    expects(found != held_.end() && found->second >= amount, "an owner gives back what it holds");
    taken_ -= amount;
    found->second -= amount;
    if (found->second == 0) held_.erase(found);
  }

  std::size_t held_by(const Owner& owner) const {
    const auto found = held_.find(owner);
    return found == held_.end() ? 0 : found->second;
  }
  /// The owner that holds the most. Precondition: some owner holds something.
  const Owner& largest() const {
    expects(!held_.empty(), "an owner holds something");
    return std::ranges::max_element(held_, {}, [](const auto& entry) { return entry.second; })
        ->first;
  }
  std::size_t taken() const { return taken_; }
  std::size_t capacity() const { return capacity_; }

 private:
  std::size_t capacity_;
  std::size_t taken_ = 0;
  std::map<Owner, std::size_t> held_;
};

}  // namespace leasehold

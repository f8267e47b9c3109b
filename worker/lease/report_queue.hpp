/// What a worker saw and has not told its broker yet. Bounded: a broker that is busy or away costs
/// this worker the oldest reports, never its memory and never its connection.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

namespace leasehold {

class ReportQueue {
 public:
  static constexpr std::size_t kMaxKept = 4096;
  static constexpr std::size_t kMaxBatch = 256;  ///< A line of them stays far below its limit.

  /// The oldest makes room.
  void push(std::string report) {
    waiting_.push_back(std::move(report));
    if (waiting_.size() <= kMaxKept) return;
    waiting_.pop_front();
    ++dropped_;
  }

  /// The oldest ones, to be sent together.
  std::vector<std::string> take() {
    const std::size_t count = waiting_.size() < kMaxBatch ? waiting_.size() : kMaxBatch;
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<std::string> taken(std::make_move_iterator(waiting_.begin()),
                                   std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    return taken;
  }

  bool empty() const { return waiting_.empty(); }
  std::uint64_t dropped() const { return dropped_; }  ///< Ever.

 private:
  std::deque<std::string> waiting_;
  std::uint64_t dropped_ = 0;
};

}  // namespace leasehold

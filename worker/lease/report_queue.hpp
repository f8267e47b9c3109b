/// Events that a worker has not reported to its broker yet. Bounded: when a slow or disconnected
/// broker fills it, the oldest reports are dropped.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace leasehold {

class ReportQueue {
 public:
  static constexpr std::size_t kMaxKept = 4096;
  static constexpr std::size_t kMaxBatch = 256;  ///< So that a message stays far below its limit.

  /// Adds a report; a full queue drops its oldest one.
  void push(std::string report) {
    waiting_.push_back(std::move(report));
    if (waiting_.size() <= kMaxKept) return;
    waiting_.pop_front();
    ++dropped_;
  }

  /// Reports dropped since the last call.
  std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

  /// Takes the oldest reports, for one message.
  std::vector<std::string> take() {
    const std::size_t count = waiting_.size() < kMaxBatch ? waiting_.size() : kMaxBatch;
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<std::string> taken(std::make_move_iterator(waiting_.begin()),
                                   std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    return taken;
  }

  bool empty() const { return waiting_.empty(); }

 private:
  std::deque<std::string> waiting_;
  std::uint64_t dropped_ = 0;
};

}  // namespace leasehold

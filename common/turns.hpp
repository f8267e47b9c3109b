/// Work of several owners for a few threads, which do it in turns: one piece of each owner that has
/// any, the oldest first, and of each owner at most one at a time. So a piece waits for the older
/// ones of its owner and for at most one of each other owner, however much those have queued; with
/// two threads one owner alone delays no other.
///
///   turns.add(owner, work);  post(threads, [&] { turns.do_next(); });
///
/// Threads: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

namespace leasehold {

template <class Owner>
class Turns {
 public:
  using Work = std::move_only_function<void()>;

  void add(const Owner& owner, Work work) {
    const std::scoped_lock lock(mutex_);
    const auto queue = std::ranges::find(queues_, owner, &Queue::owner);
    if (queue != queues_.end()) return queue->waiting.push_back(std::move(work));
    queues_.push_back({.owner = owner, .waiting = {}});
    queues_.back().waiting.push_back(std::move(work));
  }

  /// Does one piece, the next one that may be done; if there is none, because its owner's older one
  /// is being done, the thread that does that one does this one, too.
  void do_next() {
    bool is_more = true;
    while (is_more) {
      auto piece = take();
      if (!piece) return;
      piece->work();
      is_more = finish(piece->owner);
    }
  }

 private:
  struct Piece {
    Owner owner;
    Work work;
  };
  struct Queue {
    Owner owner;
    std::deque<Work> waiting;
    bool is_running = false;  // a piece of it
  };

  std::optional<Piece> take() {
    const std::scoped_lock lock(mutex_);
    const auto queue = std::ranges::find_if(
        queues_, [](const Queue& each) { return !each.is_running && !each.waiting.empty(); });
    if (queue == queues_.end()) {
      ++postponed_;
      return std::nullopt;
    }
    Piece piece{.owner = queue->owner, .work = std::move(queue->waiting.front())};
    queue->waiting.pop_front();
    queue->is_running = true;
    std::rotate(queue, std::next(queue), queues_.end());  // the others come first now
    return piece;
  }

  /// True when a call of do_next found nothing, and is to be made up for.
  bool finish(const Owner& owner) {
    const std::scoped_lock lock(mutex_);
    const auto queue = std::ranges::find(queues_, owner, &Queue::owner);
    queue->is_running = false;
    if (queue->waiting.empty()) queues_.erase(queue);
    if (postponed_ == 0) return false;
    --postponed_;
    return true;
  }

  std::mutex mutex_;
  std::deque<Queue> queues_;   // the next turn first; each waits or runs
  std::size_t postponed_ = 0;  // calls of do_next that found nothing to do
};

}  // namespace leasehold

/// Shares a few threads among the work of several owners. The threads serve the owners in turn,
/// take the oldest piece of an owner, and run at most one piece of each owner at a time. So a piece
/// waits for the older pieces of its owner and for at most one piece of each other owner, however
/// many those have queued. With two threads, one busy owner alone does not delay the others.
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

  /// Runs the next piece that may run. If there is none, because older pieces of the same owners
  /// are running, a thread that runs such a piece runs one more piece after it.
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
    bool is_running = false;  // a thread runs a piece of this owner
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
    std::rotate(queue, std::next(queue), queues_.end());  // the other owners come first now
    return piece;
  }

  /// Returns true if this thread must run one more piece, for a call of do_next that found none.
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
  // in the order of their turns; each owner has a waiting or a running piece
  std::deque<Queue> queues_;
  std::size_t postponed_ = 0;  // calls of do_next that found nothing to do
};

}  // namespace leasehold

/// The same request id with the same parameters gets the same answer.
///
/// Ids belong to a user, so nobody learns another user's answer by guessing. An answer that names a
/// lease stays as long as that lease. Of others 4096 are remembered; when that is not enough, the
/// user who has the most loses the oldest. An error that a retry may
/// cure is forgotten at once: the retry shall be tried. Threads: one.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "broker/books/answers.hpp"
#include "broker/books/rows.hpp"

namespace leasehold {

/// Who calls, and what a reply must be matched with.
struct Caller {
  CallId call;
  ConnectionId connection;
  std::int64_t pid = 0;
  std::uint32_t uid = 0;
  std::uint64_t start_ticks = 0;  ///< Of the process; 0 where nobody asks.
  RequestId request_id;           ///< Empty: the call changes nothing or cannot be repeated.
  std::string fingerprint;        ///< Method and parameters.
};

class RequestBook {
 public:
  static constexpr std::size_t kMaxEntries = 4096;

  struct New {};
  /// The same call is being worked on; its answer goes to this caller too.
  struct Joined {
    CallId first;
  };
  struct Replayed {
    Result<Answer> answer;
  };
  struct Conflict {};
  using Lookup = std::variant<New, Joined, Replayed, Conflict>;

  Lookup begin(const Caller& caller);

  /// Remembers an answer that was given before a restart.
  void restore(const journal::RequestKey& key, Answer answer);

  /// The lease is over and its memory back: what was answered with it may be forgotten.
  void release(const journal::RequestKey& key, LeaseId lease);

  /// Records the answer and names everybody who waits for it. A call that is not in the book is
  /// named alone.
  std::vector<CallId> finish(CallId call, const Result<Answer>& answer);

 private:
  using Key = std::pair<std::uint32_t, RequestId>;
  struct Entry {
    std::uint64_t digest = 0;  ///< Of the call's fingerprint.
    std::vector<CallId> waiting;
    std::optional<Result<Answer>> answer;
    bool kept = false;  ///< For its lease; not in `order_` then.
  };

  void pin_if_lease_reply(const Key& key, Entry& entry);
  void evict_oldest();
  void forget(const Key& key);
  void remove_from_order(const Key& key);

  std::map<Key, Entry> entries_;
  std::size_t kept_ = 0;
  std::map<CallId, Key> in_flight_;
  std::map<std::uint32_t, std::deque<RequestId>>
      order_;  ///< By user, oldest first, forgettable; none empty.
};

}  // namespace leasehold

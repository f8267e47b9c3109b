/// Caches answers: a call with the same request id and the same parameters gets the same answer.
///
/// Ids belong to a user, so no user can read another user's answer by guessing. An answer that
/// names a lease is kept until the lease is closed. At most 4096 other answers are kept; beyond
/// that, the user that has the most loses its oldest one. Retryable errors are not cached. Threads:
/// one.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/books/answers.hpp"
#include "broker/books/rows.hpp"

namespace leasehold {

/// The process that made a call, and the key under which the answer is cached.
struct Caller {
  CallId call;
  ConnectionId connection;
  std::int64_t pid = 0;
  std::uint32_t uid = 0;
  bool is_operator = false;
  std::uint64_t start_ticks = 0;  ///< Start time of the process; 0 where it is not needed.
  RequestId request_id;           ///< Empty: the answer is not cached.
  std::string fingerprint;        ///< Method and parameters.
};

class RequestBook {
 public:
  RequestBook() = default;
  RequestBook(RequestBook&&) = default;
  RequestBook& operator=(RequestBook&&) = default;
  RequestBook(const RequestBook&) = delete;  // its members point into `entries_`
  RequestBook& operator=(const RequestBook&) = delete;

  static constexpr std::size_t kMaxEntries = 4096;

  struct New {};
  /// An identical call is in progress; its answer goes to this caller too.
  struct Joined {
    CallId first;
  };
  struct Replayed {
    Result<Answer> answer;
  };
  struct Conflict {};
  using Lookup = std::variant<New, Joined, Replayed, Conflict>;

  Lookup begin(const Caller& caller);

  /// Restores an answer from before a restart.
  void restore(const journal::RequestKey& key, Answer answer);

  /// Call it when the lease is closed: the answer may be evicted from now on.
  void release(const journal::RequestKey& key, LeaseId lease);

  /// Caches the answer and returns all calls that wait for it. Returns `call` alone if its answer
  /// is not cached.
  std::vector<CallId> finish(CallId call, const Result<Answer>& answer);

 private:
  /// Sorted by the digest of the id, so that a search compares numbers.
  struct Key {
    std::uint64_t digest = 0;
    std::uint32_t uid = 0;
    RequestId id;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::uint64_t digest = 0;  ///< Digest of the fingerprint.
    std::vector<CallId> waiting;
    std::optional<Result<Answer>> answer;
    bool pinned = false;  ///< Kept until its lease is closed, and not in `order_`.
  };

  using Entries = std::map<Key, Entry>;

  static Key key_of(std::uint32_t uid, std::string_view request_id);
  void pin_if_lease_reply(Entries::iterator entry);
  void make_evictable(Entries::iterator entry);
  void evict_oldest();
  void forget(Entries::iterator entry);
  void remove_from_order(Entries::iterator entry);

  Entries entries_;
  std::size_t n_pinned_ = 0;
  std::map<CallId, Entries::iterator> in_flight_;
  /// Evictable entries by user, oldest first. A deque is erased when it becomes empty.
  std::map<std::uint32_t, std::deque<Entries::iterator>> order_;
};

}  // namespace leasehold

/// Sends removals of ids to the index on its own thread.
///
///   inbox ─► backlog ─► POST URL/evict ──answered──► next batch
///                          └── failed ──► wait, twice as long each time ─► the same batch again
///
/// After the first success that follows a failure, the sender calls GET URL/requests: ids that
/// ended in this worker and are still listed are sent again, because a restarted index may have
/// loaded an old state. A malformed or too large answer to /evict is a failure; a malformed or too
/// large answer to /requests is only logged.
///
/// Bounded: the inbox, the backlog (removal_backlog.hpp), each answer, and the time of an exchange.
/// The tenants share inbox and backlog: when one is full, an id of the tenant with the most ids is
/// dropped.
///
/// With a spool (id_spool.hpp) the thread also writes each live id to the spool, at once and before
/// the exchanges, and erases the ids whose removal the index confirmed. The next worker treats the
/// ids left by a killed worker as ended and removes them.
///
/// Threads: `add_live` and `add_ended` from any; they take a short lock and never wait for the
/// index or the disk. `counters` from any. Construction and `stop` on one.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>

#include "ipc/http/http_exchange.hpp"
#include "ipc/http/sending_thread.hpp"
#include "worker/index_sync/id_spool.hpp"
#include "worker/index_sync/index_inbox.hpp"
#include "worker/index_sync/removal_backlog.hpp"

namespace leasehold {

struct IndexSenderConfig {
  http::Url url;
  http::ExchangeLimits exchange;
  BacklogLimits backlog;
  std::size_t max_inbox = 16'384;
  std::chrono::milliseconds first_retry{100};
  std::chrono::milliseconds max_retry{5'000};
  http::NameLookup::Resolve resolve = http::resolve_name;
};

/// Counts since the start.
struct IndexCounters {
  std::uint64_t incoming = 0;   ///< Ids to remove, including those left by the previous worker.
  std::uint64_t removed = 0;    ///< Ids that the index reported as removed.
  std::uint64_t not_found = 0;  ///< Ids that the index did not have.
  std::uint64_t dropped = 0;    ///< Ids dropped at a bound or at the stop.
  std::uint64_t failures = 0;   ///< Exchanges without a valid answer.
  bool operator==(const IndexCounters&) const = default;
};

class IndexSender {
 public:
  explicit IndexSender(IndexSenderConfig config, std::optional<IdSpool> spool = {});
  ~IndexSender() { stop({}); }

  /// Starts the thread that sends. Call it once. Errors: SystemError.
  Result<void> start();
  /// Records that a request with this id runs, so that the id stays in the index.
  void add_live(const TenantId& tenant, const RequestId& id);
  /// Queues the removal of the id from the index.
  void add_ended(const TenantId& tenant, const RequestId& id) { add({tenant, id, false}); }

  /// Sends the waiting removals, without retries and for at most `timeout`, then ends the thread.
  void stop(std::chrono::milliseconds timeout);

  IndexCounters counters() const;

 private:
  struct Counts {
    std::atomic<std::uint64_t> incoming, removed, not_found, dropped, failures;
  };

  void add(IndexInbox::Changes::Entry change);
  void remove_leftover_ids();
  void keep_live();
  void take_inbox();
  void erase_kept(std::span<const RequestId> ids);
  boost::asio::awaitable<void> serve();
  boost::asio::awaitable<Result<void>> send_next();
  boost::asio::awaitable<Result<void>> evict();
  boost::asio::awaitable<Result<void>> reconcile();
  boost::asio::awaitable<void> wait_for_work();
  boost::asio::awaitable<void> wait_to_retry();
  void note(const Result<void>& sent);

  IndexSenderConfig config_;
  Counts counts_{};
  IndexInbox inbox_;

  // Used only on the thread.
  std::optional<IdSpool> spool_;
  RemovalBacklog backlog_;
  std::chrono::milliseconds retry_;
  bool has_failed_ = false;  ///< An exchange failed since the last success.
  bool must_reconcile_ = false;
  bool is_idle_ = false;
  bool is_stopping_ = false;

  http::SendingThread thread_;
  http::NameLookup names_;
  boost::asio::steady_timer timer_{thread_.io()};
};

}  // namespace leasehold

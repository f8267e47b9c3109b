/// Runs the batches of all keys, line by line, in the background of the worker's other requests.
///
/// A key runs one batch at a time, the oldest first; at most kMaxActive keys run theirs together,
/// with at most kLinesInFlight lines each. Tenants share these places (common/fair_shares.hpp), so
/// the keys of one get half of them at most. A line is submitted as a request of the key, under a
/// lease that gives way to all others (LeaseAcquire::scavenger). A line that a quota, a full pool
/// or a missing broker refuses is tried again later; any other answer is its result. Results are on
/// disk before the next line begins. When the disk or the tenant's quota of files is full, the
/// batch pauses until there is room.
///
/// Every ten minutes, and at the start, files and batches are removed that reached their age, or
/// whose tenant the broker no longer has.
///
/// `stop` ends the lines in flight without a result. A worker that opens the directory later runs
/// them again, with the same ids and hence the same seeds.
///
/// Lifetime: `shared` owns it; the store outlives it. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/fair_shares.hpp"
#include "worker/batch/batch_record.hpp"
#include "worker/batch/batch_store.hpp"
#include "worker/http/batch/former_tenants.hpp"
#include "worker/http/http_shared.hpp"

namespace leasehold::http {

class BatchRunner : public std::enable_shared_from_this<BatchRunner> {
 public:
  static constexpr std::size_t kMaxActive = 16;
  static constexpr int kLinesInFlight = 8;

  BatchRunner(Shared& shared, batch::BatchStore& store) : shared_(shared), store_(store) {}

  /// Resumes the batches that have not ended. `keep_alive` owns `shared`, and is kept while a batch
  /// runs.
  void start(std::weak_ptr<Shared> keep_alive);
  void add(batch::BatchRecord batch);
  /// Returns the batch as it is cancelled, or nothing if no batch of this id can be.
  boost::asio::awaitable<std::optional<batch::BatchRecord>> cancel(std::string id);
  /// Ends the lines in flight. Nothing runs afterwards.
  void stop();
  /// The batch with the counts and state of this moment. Only an end is on disk for certain.
  batch::BatchRecord as_running(const batch::BatchRecord& stored) const;

 private:
  struct Active;
  using ActivePtr = std::shared_ptr<Active>;

  void begin_next();
  void sweep();
  void publish_counts();
  ActivePtr find(const std::string& id) const;
  boost::asio::awaitable<void> drive(std::shared_ptr<Shared> shared, ActivePtr active);
  boost::asio::awaitable<bool> prepare(ActivePtr active);
  boost::asio::awaitable<void> run_lines(std::shared_ptr<Shared> shared, ActivePtr active);
  boost::asio::awaitable<void> run_until_empty(ActivePtr active);
  boost::asio::awaitable<void> run_line(ActivePtr active, std::size_t line);
  boost::asio::awaitable<std::optional<Answer>> answer_line(ActivePtr active, std::size_t line,
                                                            std::string& request_id);
  boost::asio::awaitable<void> finish(ActivePtr active);
  boost::asio::awaitable<void> append(ActivePtr active, std::size_t line, bool is_failed,
                                      std::string text);
  boost::asio::awaitable<void> persist(ActivePtr active);
  boost::asio::awaitable<void> pause(ActivePtr active, Duration wait);
  void ended(const ActivePtr& active);
  bool goes_on(const Active& active) const;

  Shared& shared_;
  batch::BatchStore& store_;
  FormerTenants former_tenants_{store_};
  std::weak_ptr<Shared> keep_alive_;
  std::deque<batch::BatchRecord> queued_;
  std::map<ApiKeyId, ActivePtr> active_;
  FairShares<TenantId> places_{kMaxActive};  // of active_
  bool is_stopped_ = false;
  client::Timer sweep_timer_;
};

}  // namespace leasehold::http

/// Waits for the disk on its own thread, because a revocation must not: moves the write-ahead log
/// into the database, which takes two fsyncs, and syncs the log.
///
/// Ownership: its own thread and database connection. Threads: any.
/// Source: https://sqlite.org/c3ref/wal_checkpoint_v2.html (PASSIVE never waits for a writer)
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "broker/journal/database.hpp"
#include "common/unique_fd.hpp"

namespace leasehold::journal {

class Checkpointer {
 public:
  /// Errors: those of Database::open.
  static Result<std::unique_ptr<Checkpointer>> start(const std::string& database_path);

  /// Requests a checkpoint. Does not wait for it.
  void wake();

  /// Requests that all that is in the log now survives a power cut. Does not wait for it. A failure
  /// of the disk shows in a later write of the journal or a checkpoint.
  void sync_log();
  /// Requests that were finished; one may serve several calls.
  std::uint64_t log_syncs() const { return log_syncs_; }

 private:
  explicit Checkpointer(Database database) : database_(std::move(database)) {}
  void work(const std::stop_token& stop);
  void request(bool& wanted);
  void sync();

  Database database_;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  bool checkpoint_wanted_ = false;
  bool sync_wanted_ = false;
  std::atomic<std::uint64_t> log_syncs_ = 0;
  UniqueFd log_;  ///< Of its thread. SQLite locks other files than this one, so closing it is safe.
  std::jthread thread_;  // last, so that it ends before the members it uses
};

}  // namespace leasehold::journal

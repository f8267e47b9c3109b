/// Does slow disk work on its own thread, because a revocation must not wait for it: moves the
/// write-ahead log into the database, which takes two fsyncs, syncs the log, and writes the head
/// file of the audit chain.
///
/// Ownership: owns its thread and a database connection. Threads: any.
/// Source: https://sqlite.org/c3ref/wal_checkpoint_v2.html (PASSIVE never waits for a writer),
/// https://sqlite.org/wal.html#ckpt (when the log restarts)
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "broker/journal/audit_head.hpp"
#include "broker/journal/database.hpp"
#include "common/machine/unique_fd.hpp"

namespace leasehold::journal {

class Checkpointer {
 public:
  using OnSynced = std::move_only_function<void(const Result<void>&)>;

  /// Errors: those of Database::open.
  static Result<std::unique_ptr<Checkpointer>> start(const std::string& database_path,
                                                     const std::string& audit_head_path);

  /// Requests a checkpoint. Does not wait for it.
  void wake();
  /// Does what wake does, and waits until the whole log is moved, at most for `timeout`. The caller
  /// is the only writer, so nothing is written meanwhile.
  void wait_for_move(std::chrono::milliseconds timeout);
  /// Number of checkpoints that moved the whole log, so that the next transaction restarts it.
  std::uint64_t complete_moves() const { return complete_moves_; }

  /// Requests a sync, after which everything that is in the log now survives a power cut. Does not
  /// wait for it; it begins a little later, so that it does not delay what is written next. A
  /// failure of the disk shows in a later write of the journal or in a checkpoint.
  void sync_log();
  /// Does what sync_log does, but at once; afterwards the thread of this object calls `on_synced`,
  /// unless the object ends first. Errors: SystemError.
  void sync_log(OnSynced on_synced);
  /// Number of finished syncs; one sync may serve several requests.
  std::uint64_t log_syncs() const { return log_syncs_; }

  /// Requests that the head file names this committed record as soon as the record survives a power
  /// cut. The file is written at most once a second, and when this object ends. If the write fails,
  /// the file keeps the older head.
  void publish_audit_head(const audit::Link& head);

 private:
  using SteadyClock = std::chrono::steady_clock;
  static constexpr SteadyClock::time_point kNever = SteadyClock::time_point::max();

  Checkpointer(Database database, std::string audit_head_path)
      : database_(std::move(database)), audit_head_path_(std::move(audit_head_path)) {}
  /// When the next sync or head is due.
  SteadyClock::time_point next_due() const;
  void sync_for(std::vector<OnSynced> handlers, const std::optional<audit::Link>& head);
  void work(const std::stop_token& stop);
  Result<void> sync();
  UniqueFd open_log() const;
  void move_log();

  Database database_;
  std::string audit_head_path_;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::condition_variable moved_;
  bool checkpoint_requested_ = false;
  SteadyClock::time_point sync_due_ = kNever;
  std::vector<OnSynced> on_synced_;        // wait for the next sync
  std::optional<audit::Link> audit_head_;  // waits to be written
  SteadyClock::time_point head_due_{};     // earliest time of the next head
  std::atomic<std::uint64_t> log_syncs_ = 0;
  std::atomic<std::uint64_t> complete_moves_ = 0;
  /// The log file, used only by the thread. Closing it releases no lock, because SQLite's locks are
  /// on other files.
  UniqueFd log_;
  std::jthread thread_;  // last, so that it ends before the members it uses
};

}  // namespace leasehold::journal

/// Moves the log into the database beside the broker's thread: that takes two fsyncs, and a
/// revocation must not wait for a disk.
///
/// Ownership: a thread and a connection of its own. Threads: `wake` from any.
/// Source: https://sqlite.org/c3ref/wal_checkpoint_v2.html (PASSIVE never waits for a writer)
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "broker/journal/database.hpp"

namespace leasehold::journal {

class Checkpointer {
 public:
  /// Errors: those of Database::open.
  static Result<std::unique_ptr<Checkpointer>> start(const std::string& database_path);

  /// The log is long enough to be worth it. Never blocks for long.
  void wake();

 private:
  explicit Checkpointer(Database database) : database_(std::move(database)) {}
  void work(const std::stop_token& stop);

  Database database_;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  bool wanted_ = false;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace leasehold::journal

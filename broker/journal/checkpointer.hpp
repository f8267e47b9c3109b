/// Moves the write-ahead log into the database on its own thread: this takes two fsyncs, and a
/// revocation must not wait for the disk.
///
/// Ownership: its own thread and database connection. Threads: `wake` from any thread.
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

  /// Requests a checkpoint. Does not wait for it.
  void wake();

 private:
  explicit Checkpointer(Database database) : database_(std::move(database)) {}
  void work(const std::stop_token& stop);

  Database database_;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  bool wanted_ = false;
  std::jthread thread_;  // last, so that it ends before the members it uses
};

}  // namespace leasehold::journal

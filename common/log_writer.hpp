/// Writes lines to a descriptor on a thread of its own, so that a reader that stops delays no
/// caller.
///
/// The queue is bounded. A line that finds it full replaces the oldest ones, which are dropped and
/// counted. Before the next line that can be written, the writer reports how many were dropped.
/// Lines that the descriptor refuses (no reader, full disk) count as dropped, too.
///
/// Lifetime: the destructor waits `kStopTimeout` for the lines that are queued. A thread that hangs
/// longer in write(2) outlives the object.
/// Threads: any. A forked child has no such thread and must not use the object.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/machine/unique_fd.hpp"

namespace leasehold {

class LogWriter {
 public:
  struct Limits {
    std::size_t max_bytes = 1 << 20;
    std::size_t max_lines = 8192;
  };
  /// Makes the line that reports how many lines were dropped, with its newline. Called on the
  /// writer's thread.
  using ResumedLine = std::function<std::string(std::uint64_t dropped)>;
  static constexpr std::chrono::seconds kStopTimeout{1};

  /// Errors: SystemError when no thread can be started.
  static Result<std::unique_ptr<LogWriter>> start(UniqueFd fd, ResumedLine resumed_line,
                                                  Limits limits);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// Queues a line that ends with a newline. Never waits for the reader.
  void write(std::string line);
  /// Waits until every queued line is written or dropped; false after `timeout`.
  bool flush(std::chrono::milliseconds timeout);
  /// Counts a line that the caller could not format.
  void count_dropped();
  std::uint64_t dropped_lines() const;

 private:
  struct Shared;
  explicit LogWriter(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void run(Shared& shared);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace leasehold

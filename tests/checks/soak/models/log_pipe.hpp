/// A named pipe that replaces a program's log, so that the log has a reader that can stop.
#pragma once

#include <cstdint>
#include <string>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace leasehold::soak {

/// Threads: one.
class LogPipe {
 public:
  /// Makes the pipe with room for one page, which a few lines fill. Errors: SystemError.
  static Result<LogPipe> create(std::string path);

  /// Reads what was written and appends it to the file PATH.read. Does nothing while the reader is
  /// stopped.
  void read();
  /// Stops the reader for this many steps.
  void stop(std::uint64_t steps) { stopped_steps_ = steps; }
  void resume() { stopped_steps_ = 0; }
  void count_step() { stopped_steps_ -= stopped_steps_ > 0 ? 1 : 0; }
  bool is_stopped() const { return stopped_steps_ > 0; }

 private:
  LogPipe(std::string path, UniqueFd end, UniqueFd copy)
      : path_(std::move(path)), end_(std::move(end)), copy_(std::move(copy)) {}

  std::string path_;
  UniqueFd end_;   // read-write, so that a program without a reader gets no SIGPIPE
  UniqueFd copy_;  // copy of the log, for people who search for the cause of a failure
  std::uint64_t stopped_steps_ = 0;
};

}  // namespace leasehold::soak

/// An event log on disk: one event per line, in the order of events, complete up to a SIGKILL.
///
/// Broker and workers write it with `--event-log`. The reports and tests of a run read it.
/// Threads: one writer. Lifetime: opening keeps what the file already holds.
#pragma once

#include <string>

#include "common/unique_fd.hpp"
#include "ipc/control/events.hpp"

namespace leasehold::events {

class EventFile {
 public:
  /// Errors: FileNotFound (no such folder), PermissionDenied, DiskFull, SystemError.
  static Result<EventFile> open(const std::string& path);

  /// Writes the event with one write(2), so that SIGKILL leaves at most one incomplete line, the
  /// last. Errors: DiskFull, SystemError. The file may then end with an incomplete line, so do not
  /// append again.
  Result<void> append(const Event& event, TimePoint at);

 private:
  explicit EventFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

/// Leaves out a last line without newline, which a killed process left incomplete.
/// Errors: FileNotFound; BadRequest for any other line that does not hold an event, with its
/// number.
Result<std::vector<StampedEvent>> read_event_file(const std::string& path);

}  // namespace leasehold::events

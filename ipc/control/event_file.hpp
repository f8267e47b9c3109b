/// A history on disk: one event per line, in the order of events, also of a process that is killed.
///
/// Written by broker and workers with `--event-log`; read by whoever judges a run.
/// Threads: one writes. Lifetime: what was in the file before stays.
#pragma once

#include <string>

#include "common/unique_fd.hpp"
#include "ipc/control/events.hpp"

namespace leasehold::events {

class EventFile {
 public:
  /// Errors: FileNotFound (no such folder), PermissionDenied, DiskFull, SystemError.
  static Result<EventFile> open(const std::string& path);

  /// One write, so that SIGKILL leaves whole lines and at most one torn one at the end.
  /// Errors: DiskFull, SystemError; the file may then end with a torn line, write no more.
  Result<void> append(const Event& event, TimePoint at);

 private:
  explicit EventFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

/// A last line without its newline was torn by a death and is left out.
/// Errors: FileNotFound; BadRequest for a whole line that is no event, naming it.
Result<std::vector<StampedEvent>> read_event_file(const std::string& path);

}  // namespace leasehold::events

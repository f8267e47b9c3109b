/// An event log on disk: one event per line, in the order of events. A SIGKILL loses no earlier
/// event.
///
/// Bounded: a file that would grow beyond the limit is renamed to PATH.1, replacing an earlier one,
/// and a new file begins at PATH. A reader that follows PATH sees a rename, as with other log
/// rotation. So the log takes at most twice the limit on disk. Devices, pipes and symbolic links,
/// such as /dev/stderr, are never renamed, so the size of their targets is not bounded.
///
/// A pipe or terminal whose reader stops delays no writer: events are lost and counted, as on a
/// full disk.
///
/// Broker and workers write the log with `--event-log`. Reports and tests read it.
/// Threads: one writer. Lifetime: opening keeps what the file already holds.
#pragma once

#include <cstdint>
#include <string>

#include "common/machine/unique_fd.hpp"
#include "ipc/control/events.hpp"

namespace leasehold::events {

class EventFile {
 public:
  static constexpr std::uint64_t kDefaultMaxBytes = 256ull << 20;
  /// Time without writes after a failed one, so that a full disk costs an event neither a system
  /// call nor a log line.
  static constexpr Duration kRetryInterval = std::chrono::seconds(10);

  /// Errors: FileNotFound (no such folder), BadRequest (a pipe that no process reads),
  /// PermissionDenied, DiskFull, SystemError.
  static Result<EventFile> open(const std::string& path,
                                std::uint64_t max_bytes = kDefaultMaxBytes);

  /// Writes the event with one write(2), so that SIGKILL leaves at most one incomplete line, the
  /// last. Returns how many events were lost since the last one that was written: 0 unless writing
  /// failed meanwhile. Errors: DiskFull (also a reader that stops), PermissionDenied, SystemError;
  /// this event is lost, and so are those of the next `kRetryInterval`, for which the result is 0.
  Result<std::uint64_t> append(const Event& event, TimePoint at);

 private:
  EventFile(UniqueFd fd, std::string path, std::uint64_t max_bytes)
      : fd_(std::move(fd)), path_(std::move(path)), max_bytes_(max_bytes) {}

  Result<void> write_line(const std::string& line);
  Result<void> rotate();

  UniqueFd fd_;
  std::string path_;
  std::uint64_t max_bytes_;
  std::string rest_;  ///< Unwritten rest of a line that a pipe took in part.
  std::uint64_t lost_ = 0;
  TimePoint retry_at_;  ///< Set while events are lost.
};

/// Reads the events of one file, not those of the renamed one. Ignores a last line without newline,
/// which a killed process left incomplete. Errors: FileNotFound; BadRequest for any other line that
/// does not hold an event, with its number.
Result<std::vector<StampedEvent>> read_event_file(const std::string& path);

}  // namespace leasehold::events

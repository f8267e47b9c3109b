/// The log of a server program. Libraries return errors; mains log, one line per event: a sentence,
/// then logfmt, e.g. `lease revoked lease=17.4 reason=operator`.
///
/// Logging waits for no reader: a thread writes the lines (common/log_writer.hpp). A process that
/// is killed loses the lines that the thread has not written yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// How long an exiting program waits until the reader of stderr has taken the last lines.
inline constexpr std::chrono::seconds kLastLineTimeout{1};

/// Makes spdlog's default logger write to stderr, with `program` in every line. `level` is one of
/// trace, debug, info, warn, error; any other value means info. An uncaught exception is logged
/// before the process aborts. A standard descriptor that is closed becomes /dev/null, so that no
/// file of the program gets its number. Once per process.
/// Errors: SystemError when no thread can be started.
Result<void> set_up_log(std::string_view program, std::string_view level);

/// Changes the level of that logger. Any thread.
void set_log_level(std::string_view level);

/// Waits up to `kLastLineTimeout` until the log is written; does nothing without a log. std::exit
/// also flushes the log; `_Exit` and a signal do not. Any thread.
void flush_log();

/// Flushes the log and ends the process without destructors.
[[noreturn]] void exit_at_once(int exit_code);

/// Writes a line after those of the log and flushes them. Returns false without a log: the caller
/// then prints the line.
bool write_last_line(std::string_view line);

/// Queues text that is not a log line, such as a progress bar, behind the lines of the log. Returns
/// false without a log.
bool write_beside_log(std::string_view text);

/// Lines that no reader took. Any thread.
std::uint64_t log_lines_dropped();

}  // namespace leasehold

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

/// How long the last line before an exit, and those before it, wait for the reader of stderr.
inline constexpr std::chrono::seconds kLastLineTimeout{1};

/// Makes spdlog's default logger write to stderr, with `program` in every line. `level` is one of
/// trace, debug, info, warn, error; any other value means info. An exception that no code catches
/// is printed there, too, before the process aborts. A standard descriptor that is closed becomes
/// /dev/null, so that no file of the program gets its number. Once per process.
/// Errors: SystemError when no thread can be started.
Result<void> set_up_log(std::string_view program, std::string_view level);

/// Changes the level of that logger. Any thread.
void set_log_level(std::string_view level);

/// Waits up to `kLastLineTimeout` until the log is written; does nothing without a log. An orderly
/// exit does so by itself, `_Exit` and a signal do not. Any thread.
void flush_log();

/// Flushes the log and ends the process without destructors.
[[noreturn]] void exit_at_once(int exit_code);

/// Writes a line behind those of the log and flushes it. False without a log: the caller prints.
bool write_last_line(std::string_view line);

/// Writes text beside the lines of the log, such as a progress bar. False without a log.
bool write_beside_log(std::string_view text);

/// Lines that no reader took. Any thread.
std::uint64_t log_lines_dropped();

}  // namespace leasehold

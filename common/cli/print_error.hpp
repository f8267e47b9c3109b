/// Prints errors to stderr, one printable line each, and checks that stdout accepted the output.
///
/// Threads: one. Errors: nothing here throws for a stream that cannot be written, unlike
/// fmt::print. A line that stderr does not accept is lost; the exit code still reports the error.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// Exit code of a program whose reader closed stdout: the one that SIGPIPE causes.
inline constexpr int kExitReaderGone = 128 + 13;

/// Replaces each control character but those in `kept`, and each format control, with a space, so
/// that text from outside cannot control the terminal or look like other text.
std::string printable(std::string_view text, std::string_view kept = {});

/// What a user can try, without a full stop. Differs from the hint for the error's code in two
/// cases: an error about a published text, whose lease has no tenant, and a drain, which a tenant
/// cannot end.
std::string_view error_hint(const Error& error);

/// The line for an error: "brokerctl: no tenant B (UnknownTenant); next: admit it with …". The hint
/// of a code is left out where the detail says what to do.
std::string format_error(std::string_view program, const Error& error);
/// The same with another hint.
std::string format_error(std::string_view program, const Error& error, std::string_view next);

/// Prints the error to stderr, after the lines of the log in a program that has one. A reader that
/// does not read then delays the exit by `kLastLineTimeout` at most. Returns the exit code.
int print_error(std::string_view program, const Error& error);
/// The same with another hint.
int print_error(std::string_view program, const Error& error, std::string_view next);

/// Ends main: flushes stdout and returns `exit_code`. When stdout did not accept everything, prints
/// DiskFull and returns its code; when its reader is gone, returns kExitReaderGone silently.
int finish_program(std::string_view program, int exit_code);
/// The same; `print` prints the error and returns its exit code.
int finish_program_with(int exit_code, const std::function<int(const Error&)>& print);

}  // namespace leasehold

/// Prints errors to stderr, one printable line each, and checks that stdout accepted the output.
///
/// Threads: one. Errors: nothing here throws for a stream that cannot be written, unlike
/// fmt::print. A line that stderr does not accept is lost; the exit code still reports the error.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// Replaces each control character but those in `kept` with a space, so that text from outside
/// cannot control the terminal.
std::string printable(std::string_view text, std::string_view kept = {});

/// What a user can try, without a full stop. Differs from that of the code for an error about a
/// published text, whose lease has no tenant.
std::string_view error_hint(const Error& error);

/// The line for an error: "brokerctl: no tenant B (UnknownTenant); next: admit it with …".
std::string format_error(std::string_view program, const Error& error);

/// Prints the error to stderr. Returns the exit code.
int print_error(std::string_view program, const Error& error);

/// Flushes stdout at the end of a program. Errors: DiskFull when stdout did not accept everything.
Result<void> flush_stdout();

/// Ends main: returns `exit_code`, or prints the error of lost output and returns its code.
int finish_program(std::string_view program, int exit_code);

}  // namespace leasehold

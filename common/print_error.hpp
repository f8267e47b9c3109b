/// What a program tells whoever started it: errors on stderr, one clean line each, and whether its
/// answer on stdout arrived.
///
/// Threads: one. Errors: nothing here throws for a stream that cannot be written, as fmt::print
/// would; a line that stderr does not take is lost, and the exit code says it still.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// The text with a blank for each control character, so that a path, a word or another process
/// cannot drive the terminal.
std::string printable(std::string_view text);

/// "brokerctl: no tenant B (UnknownTenant); next: admit it first, see `brokerctl tenants`".
std::string format_error(std::string_view program, const Error& error);

/// Explains it on stderr. The exit code to end with.
int print_error(std::string_view program, const Error& error);

/// To be asked once, when all is said: DiskFull when stdout did not take all of it.
Result<void> flush_stdout();

/// For the end of main: `exit_code`, or that of an answer that got lost, which is told.
int finish_program(std::string_view program, int exit_code);

}  // namespace leasehold

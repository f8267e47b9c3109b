/// Formats errors as JSON for programs. For people: common/cli/print_error.hpp. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::cli {

/// One line: {"error": {"code", "detail", "next", "exit_code", "retryable"}}.
std::string error_json(const Error& error);
/// The same with another hint.
std::string error_json(const Error& error, std::string_view next);

/// Exit code of a wait that the user interrupted, as a shell reports SIGINT.
inline constexpr int kExitInterrupted = 130;

/// The same for an interrupted wait, with kExitInterrupted. The error is not retryable, because the
/// caller ended the wait.
std::string interrupted_json(const Error& error);

/// The same for wrong usage, with the code "BadRequest" and exit code 2.
std::string usage_json(std::string_view text);

}  // namespace leasehold::cli

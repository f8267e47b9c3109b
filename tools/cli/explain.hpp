/// Errors as lines of JSON, for programs that read ours; for people: common/print_error.hpp.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::cli {

/// As one line: {"error": {"code", "detail", "next", "exit_code", "retryable"}}.
std::string explain_json(const Error& error);

/// Wrong usage as JSON; exit code 2 belongs to no code of the list, "BadRequest" says what it is.
std::string usage_json(std::string_view text);

}  // namespace leasehold::cli

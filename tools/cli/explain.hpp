/// Error lines for people: what was wrong, its code, and what to do next.
#pragma once

#include <string>
#include <string_view>

#include "common/command_line.hpp"
#include "common/result.hpp"

namespace leasehold::cli {

using leasehold::kExitOk;
using leasehold::kExitUsage;

/// "brokerctl: no tenant B (UnknownTenant); next: admit it first, see `brokerctl tenants`".
std::string explain(std::string_view program, const Error& error);

/// The same as one line of JSON: {"error": {"code", "detail", "next", "exit_code", "retryable"}}.
std::string explain_json(const Error& error);

/// Wrong usage as JSON; exit code 2 belongs to no code of the list, "BadRequest" says what it is.
std::string usage_json(std::string_view text);

/// The text with control characters replaced, so that another process cannot drive the terminal.
std::string printable(std::string_view text);

}  // namespace leasehold::cli

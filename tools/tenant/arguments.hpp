/// What somebody asked leasehold-tenant to do.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>

#include "tools/tenant/session.hpp"

namespace leasehold::tenant {

enum class Output { Text, Json };

struct Arguments {
  std::optional<std::string> socket;
  Output output = Output::Text;
  bool prompt_from_stdin = false;
  /// Complete but for `broker_path`, and for the prompt when it comes from stdin.
  SessionConfig config;
};

/// Help that was asked for (exit code 0, for stdout), or wrong usage (2, for stderr).
struct Usage {
  int exit_code = 2;
  std::string text;
};

/// `arguments` without the program's name. Mints a request id unless one is given.
std::expected<Arguments, Usage> parse_arguments(std::span<const std::string> arguments);

}  // namespace leasehold::tenant

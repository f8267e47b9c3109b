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
  std::string prompt;  ///< Unless it comes from stdin.
  bool prompt_from_stdin = false;
  bool is_chat = false;
  std::optional<std::string> system;  ///< The system's turn of a chat.
  /// Complete but for `broker_path` and the prompt.
  SessionConfig config;
};

/// Puts the prompt where it belongs: plain, or in the user's turn behind the system's.
void set_prompt(Arguments& arguments, std::string prompt, std::int64_t now_unix_s);

/// Help that was asked for (exit code 0, for stdout), or wrong usage (2, for stderr).
struct Usage {
  int exit_code = 2;
  std::string text;
};

/// `arguments` without the program's name. Mints a request id unless one is given.
std::expected<Arguments, Usage> parse_arguments(std::span<const std::string> arguments);

}  // namespace leasehold::tenant

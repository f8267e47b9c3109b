/// What somebody asked leasehold-tenant to do.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>

#include "common/command_line.hpp"
#include "tools/client/session.hpp"

namespace leasehold::tenant {

/// As long as a message may be: a longer text no worker would take.
inline constexpr std::size_t kMaxTextBytes = 1 << 20;

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

/// `arguments` without the program's name. Mints a request id unless one is given.
std::expected<Arguments, Usage> parse_arguments(std::span<const std::string> arguments);

}  // namespace leasehold::tenant

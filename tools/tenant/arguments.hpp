/// The command line of leasehold-tenant.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>

#include "common/cli/command_line.hpp"
#include "ipc/client/session.hpp"

namespace leasehold::tenant {

/// Longest prompt, grammar or schema, because a worker accepts no longer message.
inline constexpr std::size_t kMaxTextBytes = 1 << 20;

enum class Output { Text, Json };

struct Arguments {
  std::optional<std::string> socket;
  Output output = Output::Text;
  std::string prompt;  ///< Empty when the prompt comes from stdin.
  bool prompt_from_stdin = false;
  bool is_chat = false;
  std::optional<std::string> system;  ///< The system message of a chat.
  /// Complete except for `broker_path` and the prompt.
  client::SessionConfig config;
};

/// Stores the prompt in the request: as plain text, or as the user's message after the system
/// message. A chat also stores `now_unix_s`, so that a rebind renders the same chat template.
void set_prompt(Arguments& arguments, std::string prompt, std::int64_t now_unix_s);

/// `arguments` excludes the program's name. The request gets a new id unless --request-id gives
/// one. Reads the files of --json-schema and --grammar.
std::expected<Arguments, Usage> parse_arguments(std::span<const std::string> arguments);

}  // namespace leasehold::tenant

/// The texts that attackers send. Pure, and bounded: no text is longer than a line may be by much.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ipc/control/messages_common.hpp"

namespace leasehold::attack {

/// The longest line that a connection with a token may send.
inline constexpr std::size_t kLongLineBytes = 1 << 20;

std::string call_line(const wire::Json& id, std::string_view method, const wire::Json& params);
std::string authentication(const std::string& token);

/// What a request of an attacker asks for.
struct Ask {
  std::string token;
  std::string request_id;
  std::uint32_t max_tokens = 16;
  std::string prompt;   ///< Empty: a few token ids.
  wire::Json sampling;  ///< Null: the default.
};
std::string submit_line(const Ask& ask);

/// A valid line of almost 1 MiB that is expensive to parse: as many numbers as a worker parses.
std::string expensive_line();
/// A line that never ends, as long as a stranger can hope to send it.
std::string endless_line();

/// `name`, and what the request's sampling holds.
using NamedSampling = std::pair<std::string_view, wire::Json>;

/// A request of this key with a body of chunks that never comes to its end, one for each place
/// where HTTP has framing.
std::vector<std::string> endless_requests(const std::string& api_key);
/// A request whose body is as long as it may be, with as many members as are parsed.
std::string expensive_request(const std::string& api_key);

/// Grammars in GBNF that are short to write and long to compile or to follow.
std::vector<NamedSampling> grammar_bombs();
/// The same as JSON schemas and patterns.
std::vector<NamedSampling> schema_bombs();

/// A token with one byte of its MAC changed, or that names another lease or tenant.
std::vector<std::string> forged_tokens(const std::string& token);

}  // namespace leasehold::attack

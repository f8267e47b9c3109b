/// The texts that attackers send. Pure. Each text is at most a little longer than a line may be.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ipc/control/messages/common.hpp"

namespace leasehold::attack {

/// The longest line that a connection with a token may send.
inline constexpr std::size_t kLongLineBytes = 1 << 20;

std::string call_line(const wire::Json& id, std::string_view method, const wire::Json& params);
std::string authentication(const std::string& token);

/// The parameters of an attacker's request.
struct Ask {
  std::string token;
  std::string request_id;
  std::uint32_t max_tokens = 16;
  std::string prompt;   ///< Empty: use a few token ids.
  wire::Json sampling;  ///< Null: the default.
};
std::string submit_line(const Ask& ask);

/// A valid line of almost 1 MiB that is expensive to parse: it has as many numbers as a worker
/// accepts.
std::string expensive_line();
/// A line without an end, of the length that a stranger can hope to send.
std::string endless_line();

/// A name, and the sampling of the request.
using NamedSampling = std::pair<std::string_view, wire::Json>;

/// Returns requests with this key whose chunked body never ends: one for each place where HTTP has
/// framing.
std::vector<std::string> endless_requests(const std::string& api_key);
/// A request whose body has the greatest length and the most members that the server accepts.
std::string expensive_request(const std::string& api_key);

/// Grammars in GBNF that are short to write and long to compile or to follow.
std::vector<NamedSampling> grammar_bombs();
/// The same as JSON schemas and patterns.
std::vector<NamedSampling> schema_bombs();

/// Returns forgeries of the token: with one byte of the MAC changed, or with another lease or
/// tenant.
std::vector<std::string> forged_tokens(const std::string& token);

}  // namespace leasehold::attack

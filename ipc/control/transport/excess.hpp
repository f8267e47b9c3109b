/// Checks before a JSON text is parsed that it costs no more than its sender may cause.
///
/// Threads: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold::control {

/// Returns which of the limits `max_depth` and `max_values` the JSON text exceeds: "more than 32
/// levels …". Nothing if it exceeds neither. Only scans the bytes, so a hostile text costs no
/// memory. Characters inside strings do not count.
std::optional<std::string> exceeded_limit(std::string_view json, const Limits& limits);

/// Limits for one request of a client, and for a JSON text within it. Conversations and schemas
/// have fewer values. To free this many takes a thread up to 2 ms.
inline constexpr Limits kRequestLimits{.max_values = 1 << 15};

/// Parses a JSON text that a client sent. Errors: BadRequest, which names the text as `what`, when
/// the text exceeds kRequestLimits or is not JSON.
Result<nlohmann::ordered_json> parse_request_json(std::string_view json, std::string_view what);

}  // namespace leasehold::control

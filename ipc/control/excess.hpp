/// Whether a JSON text costs more than its sender may cause, before anything of it is built.
///
/// Threads: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold::control {

/// What this JSON text has more of than `max_depth` and `max_values` allow: "more than 32 levels
/// …". Scans the bytes, so that a hostile text costs no memory. Characters inside texts do not
/// count.
std::optional<std::string> excess_of(std::string_view json, const Limits& limits);

/// Of one request of a client, also of a JSON text within it: more than a conversation or a schema
/// has. Freeing them takes a thread up to 2 ms.
inline constexpr Limits kRequestLimits{.max_values = 1 << 15};

/// The value of a JSON text that a client sent. Errors: BadRequest with `what` the text is, when it
/// has more than kRequestLimits allow or is not JSON.
Result<nlohmann::ordered_json> parse_request_json(std::string_view json, std::string_view what);

}  // namespace leasehold::control

/// The error in a host's answer. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "common/result.hpp"
#include "tools/gateway/host_connection.hpp"

namespace leasehold::gateway {

/// Nothing for an answer without a code that this version knows. Reads the forms of OpenAI's and
/// Anthropic's APIs, and the Retry-After of the head.
std::optional<Error> error_in(const HostHead& head, std::string_view body);

}  // namespace leasehold::gateway

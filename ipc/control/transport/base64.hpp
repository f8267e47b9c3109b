/// Bytes as base64 text, with padding. Source: RFC 4648, section 4. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leasehold::control {

std::string to_base64(std::string_view bytes);

/// Nothing for a text that is not base64 with padding.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace leasehold::control

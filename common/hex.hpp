/// Bytes as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace leasehold {

/// Two lower-case hex digits per byte.
std::string to_hex(std::span<const std::uint8_t> bytes);

}  // namespace leasehold

/// Reads a time that a user wrote.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace leasehold::cli {

/// Converts a day, such as 2026-11-24, or a time, such as 2026-11-24T18:30:00Z, from UTC to Unix
/// milliseconds. Pure. Errors: BadRequest.
Result<std::int64_t> parse_utc_ms(const std::string& text);

}  // namespace leasehold::cli

/// Reads the JSON objects of adapter files, which come from anyone. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// Parses a JSON object of a few levels and at most 2^15 values. Errors: FileCorrupt naming `path`.
Result<nlohmann::ordered_json> parse_file_object(std::string_view text, std::string_view path);

}  // namespace leasehold

/// Whether a JSON value is valid under a schema, by the standard's own words: no grammar in sight.
/// Knows the keywords of worker/text/grammar/json_schema.hpp; the formats and patterns by
/// std::regex.
#pragma once

#include <nlohmann/json.hpp>

namespace leasehold::testing {

/// Empty when valid, else what is wrong and where.
std::string why_invalid(const nlohmann::ordered_json& document,
                        const nlohmann::ordered_json& schema, const nlohmann::json& value);

}  // namespace leasehold::testing

/// Validates a JSON value against a schema as the standard defines, without a grammar. Supports the
/// keywords of worker/text/grammar/schema/json_schema.hpp; formats and patterns by std::regex.
#pragma once

#include <nlohmann/json.hpp>

namespace leasehold::testing {

/// Empty if valid, else the cause and the path.
std::string why_invalid(const nlohmann::ordered_json& document,
                        const nlohmann::ordered_json& schema, const nlohmann::json& value);

}  // namespace leasehold::testing

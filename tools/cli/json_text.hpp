/// JSON as the programs print it: safe on a terminal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace leasehold::cli {

/// The document as text, on one line if `indent` is -1. Invalid UTF-8 is replaced. U+007F to U+009F
/// and format controls are escaped, because terminals obey them; JSON escapes the other control
/// characters anyway.
std::string json_text(const nlohmann::json& document, int indent = -1);

}  // namespace leasehold::cli

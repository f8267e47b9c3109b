/// Formats JSON so that it is safe to print on a terminal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace leasehold::cli {

/// Returns the document as text, on one line if `indent` is -1. Replaces invalid UTF-8, and escapes
/// characters that terminals obey (common/cli/terminal_text.hpp).
std::string json_text(const nlohmann::json& document, int indent = -1);

}  // namespace leasehold::cli

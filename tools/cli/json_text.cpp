#include "tools/cli/json_text.hpp"

#include <nlohmann/json.hpp>

#include "common/cli/terminal_text.hpp"

namespace leasehold::cli {

std::string json_text(const nlohmann::json& document, int indent) {
  return escape_controls(
      document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace leasehold::cli

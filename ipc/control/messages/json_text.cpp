#include "ipc/control/messages/json_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace leasehold::control {

std::string json_string(std::string_view text) {
  if (!std::ranges::all_of(text, is_plain))
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string line;
  line.reserve(text.size() + 2);
  return line.append("\"").append(text).append("\"");
}

}  // namespace leasehold::control

#include "tools/cli/json_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/utf8.hpp"

namespace leasehold::cli {
namespace {

constexpr char kDelete = 0x7F;

std::string escape(unsigned code_point) {
  return fmt::format("\\u{:04x}", code_point);
}

}  // namespace

std::string json_text(const nlohmann::json& document, int indent) {
  const std::string dumped =
      document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string text;
  text.reserve(dumped.size());
  for (std::size_t i = 0; i < dumped.size(); ++i) {
    if (begins_with_wide_control(std::string_view(dumped).substr(i))) {
      text += escape(static_cast<unsigned char>(dumped[++i]));  // its second byte is its number
    } else if (dumped[i] == kDelete) {
      text += escape(kDelete);
    } else {
      text += dumped[i];
    }
  }
  return text;
}

}  // namespace leasehold::cli

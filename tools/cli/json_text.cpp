#include "tools/cli/json_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace leasehold::cli {
namespace {

constexpr char kDelete = 0x7F;
constexpr char kFirstOfTwo = '\xC2';  ///< U+0080 to U+009F are C2 80 to C2 9F.

bool is_second_of_control(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value >= 0x80 && value <= 0x9F;
}

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
    const bool is_control =
        dumped[i] == kFirstOfTwo && i + 1 < dumped.size() && is_second_of_control(dumped[i + 1]);
    if (is_control) {
      text += escape(static_cast<unsigned char>(dumped[++i]));
    } else if (dumped[i] == kDelete) {
      text += escape(kDelete);
    } else {
      text += dumped[i];
    }
  }
  return text;
}

}  // namespace leasehold::cli

#include "tools/cli/json_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "common/format_control.hpp"

namespace leasehold::cli {
namespace {

constexpr char kDelete = 0x7F;

std::string escape(unsigned code_point) {
  return fmt::format("\\u{:04x}", code_point);
}

/// Precondition: one character of two or three bytes.
unsigned code_point_of(std::string_view character) {
  unsigned code_point =
      static_cast<unsigned char>(character[0]) & (character.size() == 2 ? 0x1F : 0x0F);
  for (const char byte : character.substr(1))
    code_point = code_point << 6 | (static_cast<unsigned char>(byte) & 0x3F);
  return code_point;
}

}  // namespace

std::string json_text(const nlohmann::json& document, int indent) {
  const std::string dumped =
      document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string text;
  text.reserve(dumped.size());
  for (std::size_t i = 0; i < dumped.size(); ++i) {
    const std::string_view rest = std::string_view(dumped).substr(i);
    if (const std::size_t wide = format_control_bytes(rest); wide > 0) {
      text += escape(code_point_of(rest.substr(0, wide)));
      i += wide - 1;
    } else if (dumped[i] == kDelete) {
      text += escape(kDelete);
    } else {
      text += dumped[i];
    }
  }
  return text;
}

}  // namespace leasehold::cli

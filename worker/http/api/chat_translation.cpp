#include "worker/http/api/chat_translation.hpp"

#include <cctype>
#include <string>

namespace leasehold::http {
namespace {

bool is_in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Replaces a name where it stands alone: "stop", but not the one in "stop_token_ids".
void replace_name(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos;) {
    const std::size_t end = at + from.size();
    const bool is_part =
        (at > 0 && is_in_name(text[at - 1])) || (end < text.size() && is_in_name(text[end]));
    if (!is_part) text.replace(at, from.size(), to);
    at = text.find(from, is_part ? end : at + to.size());
  }
}

}  // namespace

Read<void> check_fixed_fields(const Field& body, std::span<const FixedField> fixed) {
  for (const auto& [key, value, refusal] : fixed)
    if (const Field field = body[key]; field && field.json() != value) return field.refuse(refusal);
  return {};
}

ApiError renamed(ApiError refused, std::span<const RenamedPath> paths) {
  std::string& path = refused.param;
  for (const auto& [chat, body] : paths) {
    if (path == chat || path.starts_with(std::string(chat) + "/"))
      path.replace(0, chat.size(), body);
    replace_name(refused.error.detail, chat, body);
  }
  return refused;
}

}  // namespace leasehold::http

#include "worker/http/api/chat_translation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "worker/http/api/constraint_fields.hpp"
#include "worker/http/api/sampling_fields.hpp"

namespace leasehold::http {
namespace {

bool is_in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Replaces whole names only: "stop", but not the beginning of "stop_token_ids".
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

OrderedJson same_fields(const Field& body, std::span<const char* const> same) {
  OrderedJson fields = OrderedJson::object();
  const auto copy = [&](const char* key) {
    if (const Field field = body[key]) fields[key] = field.json();
  };
  std::ranges::for_each(same, copy);
  std::ranges::for_each(kSamplingFields, copy);
  std::ranges::for_each(constraint_fields(), copy);
  fields.erase("response_format");
  return fields;
}

Read<void> check_fixed_fields(const Field& body, std::span<const FixedField> fixed) {
  for (const auto& [key, value, refusal] : fixed)
    if (const Field field = body[key]; field && field.json() != value) return field.refuse(refusal);
  return {};
}

Read<std::string> word_of(const Field& field, std::initializer_list<std::string_view> words) {
  if (field.is_text() && std::ranges::find(words, field.text()) != words.end()) return field.text();
  return field.refuse(fmt::format("{} is {}, got {}", field.path(), fmt::join(words, " or "),
                                  field ? shown(field.json()) : "null"));
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

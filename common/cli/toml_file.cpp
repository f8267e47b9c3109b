#include "common/cli/toml_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

namespace leasehold {
namespace {

std::string kind_name(toml::node_type type) {
  switch (type) {
    case toml::node_type::table:
      return "table";
    case toml::node_type::array:
      return "array";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "date or time";
    default:
      return "value";
  }
}

TomlValue value_of(const toml::node& node) {
  if (const auto* boolean = node.as_boolean())
    return {TomlType::Boolean, boolean->get() ? "true" : "false"};
  if (const auto* integer = node.as_integer())
    return {TomlType::Integer, std::to_string(integer->get())};
  if (const auto* number = node.as_floating_point())
    return {TomlType::Float, fmt::format("{}", number->get())};
  if (const auto* string = node.as_string()) return {TomlType::String, string->get()};
  return {TomlType::Other, kind_name(node.type())};
}

TomlEntry entry_of(std::string_view key, const toml::node& node, std::uint32_t line) {
  TomlEntry entry{.key = std::string(key), .is_array = node.is_array(), .line = line};
  const toml::array* const array = node.as_array();
  if (array == nullptr) {
    entry.values.push_back(value_of(node));
  } else {
    for (const toml::node& element : *array) entry.values.push_back(value_of(element));
  }
  return entry;
}

std::string_view name_of(const TomlValue& value, bool is_plural) {
  constexpr std::string_view kNames[][2] = {{"boolean", "array of booleans"},
                                            {"integer", "array of integers"},
                                            {"number", "array of numbers"},
                                            {"string", "array of strings"}};
  if (value.type == TomlType::Other) return is_plural ? "array" : std::string_view(value.text);
  return kNames[static_cast<unsigned>(value.type)][is_plural ? 1 : 0];
}

}  // namespace

std::string_view TomlEntry::type_name() const {
  return values.empty() ? "empty array" : name_of(values.front(), is_array);
}

Result<std::vector<TomlEntry>> parse_toml(std::string_view text) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return fail(Errc::BadRequest, fmt::format("{}: {}", parsed.error().source().begin.line,
                                              parsed.error().description()));
  }
  std::vector<TomlEntry> entries;
  for (const auto& [key, node] : parsed.table())
    entries.push_back(entry_of(key.str(), node, key.source().begin.line));
  std::ranges::sort(entries, {}, &TomlEntry::line);
  return entries;
}

std::string toml_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      quoted += {'\\', letter};
    } else if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) {
      quoted += fmt::format("\\u{:04X}", static_cast<unsigned>(letter));
    } else {
      quoted += letter;
    }
  }
  return quoted + '"';
}

}  // namespace leasehold

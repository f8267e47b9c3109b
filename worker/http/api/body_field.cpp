#include "worker/http/api/body_field.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/utf8.hpp"

namespace leasehold::http {
namespace {

/// A double represents every integer up to 2^53 exactly.
constexpr double kMostExact = 9007199254740992.0;

/// Escapes a key for a JSON pointer (RFC 6901).
std::string escaped(std::string_view key) {
  std::string token;
  for (const char c : key) {
    if (c == '~' || c == '/') {
      token += c == '~' ? "~0" : "~1";
    } else {
      token += c;
    }
  }
  return token;
}

std::string joined(const std::string& path, const std::string& token) {
  return path.empty() ? token : path + "/" + token;
}

}  // namespace

Field Field::operator[](std::string_view key) const {
  return {value_ == nullptr ? nullptr : field_of(*value_, key), joined(path_, escaped(key))};
}

Field Field::at(std::size_t index) const {
  const OrderedJson& element = (*value_)[index];
  return {element.is_null() ? nullptr : &element, joined(path_, std::to_string(index))};
}

BodyFields::BodyFields(const OrderedJson& json) {
  for (auto member = json.begin(); member != json.end(); ++member)
    members_.emplace(member.key(), &*member);
}

Field BodyFields::operator[](std::string_view key) const {
  const auto found = members_.find(key);
  const bool is_sent = found != members_.end() && !found->second->is_null();
  return {is_sent ? found->second : nullptr, escaped(key)};
}

Read<bool> flag_of(const Field& field, bool otherwise) {
  if (!field) return otherwise;
  if (field.json().is_boolean()) return field.json().get<bool>();
  return field.refuse(fmt::format("{} is true or false", field.path()));
}

Read<std::uint32_t> count_of(const Field& field, CountRange range, std::uint32_t otherwise) {
  if (!field) return otherwise;
  const auto whole = whole_number(field.json());
  if (whole && *whole >= range.least && *whole <= range.most)
    return static_cast<std::uint32_t>(*whole);
  return field.refuse(fmt::format("{} is a whole number from {} to {}, got {}", field.path(),
                                  range.least, range.most, shown(field.json())));
}

Read<float> number_of(const Field& field, NumberRange range, float otherwise) {
  if (!field) return otherwise;
  const double number = field.json().is_number() ? field.json().get<double>() : std::nan("");
  // Compare as floats, so that 0.01 is within a range that begins at 0.01f.
  if (std::abs(number) <= 1e9) {
    const auto value = static_cast<float>(number);
    if (value >= range.low && value <= range.high) return value;
  }
  return field.refuse(fmt::format("{} is a number from {} to {}, got {}", field.path(), range.low,
                                  range.high, shown(field.json())));
}

Read<std::string> text_of(const Field& field, std::string otherwise) {
  if (!field) return otherwise;
  if (field.json().is_string()) return field.text();
  return field.refuse(fmt::format("{} is a text, got {}", field.path(), shown(field.json())));
}

Read<void> check_object(const Field& field) {
  if (!field || field.json().is_object()) return {};
  return field.refuse(fmt::format("{} is an object, got {}", field.path(), shown(field.json())));
}

Read<void> check_array(const Field& field, std::size_t most) {
  if (!field) return {};
  if (!field.json().is_array())
    return field.refuse(fmt::format("{} is an array, got {}", field.path(), shown(field.json())));
  if (field.json().size() <= most) return {};
  return field.refuse(fmt::format("{} has {} entries; at most {} are allowed", field.path(),
                                  field.json().size(), most));
}

std::optional<std::int64_t> whole_number(const OrderedJson& json) {
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (!json.is_number_float()) return std::nullopt;
  const double number = json.get<double>();
  if (std::abs(number) > kMostExact || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::string shown(const OrderedJson& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  if (value.is_string())
    return fmt::format("the text '{}'", printable_excerpt(value.get_ref<const std::string&>()));
  return value.dump();
}

}  // namespace leasehold::http

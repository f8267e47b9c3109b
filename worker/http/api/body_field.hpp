/// A value of a parsed body, and functions that read values and report the path of a wrong one.
/// Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ipc/http/http_errors.hpp"
#include "worker/text/sampling/params.hpp"

namespace leasehold::http {

using OrderedJson = nlohmann::ordered_json;  ///< Keeps the order of a schema's members.

/// A value, or the error of the field that has a wrong one.
template <class T>
using Read = std::expected<T, ApiError>;

/// Null if the field is missing or null, or if `in` is not an object.
inline const OrderedJson* field_of(const OrderedJson& in, std::string_view key) {
  if (!in.is_object()) return nullptr;
  const auto found = in.find(key);
  return found == in.end() || found->is_null() ? nullptr : &*found;
}

/// A value of a body with its path, which is its JSON pointer without the first slash, such as
/// "tools/0/function/name". A field that is missing or null counts as not sent.
///
/// Lifetime: the body outlives it.
class Field {
 public:
  Field(const OrderedJson* value, std::string path) : value_(value), path_(std::move(path)) {}

  bool is_sent() const { return value_ != nullptr; }
  explicit operator bool() const { return is_sent(); }
  /// The text, or an empty one if this is not a text.
  std::string text() const { return is_text() ? value_->get<std::string>() : std::string(); }
  bool is_text() const { return is_sent() && value_->is_string(); }
  bool is_object() const { return is_sent() && value_->is_object(); }
  bool is_array() const { return is_sent() && value_->is_array(); }
  const std::string& path() const { return path_; }
  /// Precondition: the field is sent.
  const OrderedJson& json() const { return *value_; }

  /// The member with this key. It is not sent unless this is an object that has it.
  Field operator[](std::string_view key) const;
  /// The element at `index`. Precondition: this is an array that has it.
  Field at(std::size_t index) const;

  /// The error that refuses this field; `detail` says what to send.
  std::unexpected<ApiError> refuse(std::string detail, Errc code = Errc::BadRequest) const {
    return std::unexpected(ApiError{{code, std::move(detail)}, path_});
  }

 private:
  const OrderedJson* value_;
  std::string path_;
};

/// The members of a body, with lookup in constant time.
///
/// Lifetime: the JSON outlives it.
class BodyFields {
 public:
  /// Precondition: `json` is an object.
  explicit BodyFields(const OrderedJson& json);
  Field operator[](std::string_view key) const;

 private:
  std::unordered_map<std::string_view, const OrderedJson*> members_;
};

/// Both bounds are inclusive.
struct CountRange {
  std::uint32_t least = 0;
  std::uint32_t most = UINT32_MAX;
};

// Each returns `otherwise` for a field that is not sent.

Read<bool> flag_of(const Field& field, bool otherwise);
/// Accepts a whole number, also one written as 16.0.
Read<std::uint32_t> count_of(const Field& field, CountRange range, std::uint32_t otherwise);
Read<float> number_of(const Field& field, NumberRange range, float otherwise);
Read<std::string> text_of(const Field& field, std::string otherwise);

/// These accept a field that is not sent. They refuse any other field that is not an object, or not
/// an array of at most `most` elements.
Read<void> check_object(const Field& field);
Read<void> check_array(const Field& field, std::size_t most);

/// The number if it is whole and fits an int64, even if it is written as 16.0.
std::optional<std::int64_t> whole_number(const OrderedJson& json);

/// The value as an error message shows it.
std::string shown(const OrderedJson& value);

}  // namespace leasehold::http

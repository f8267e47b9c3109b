/// Reads and writes the named fields of one JSON object from a single description of its type.
///
///   void describe(Is<Message> auto& m, auto& fields) {   // in the namespace of Message
///     fields.field("tenant", m.tenant);
///     fields.field("weight", m.weight, Between<std::uint32_t>{1, 1000});
///     fields.field("uid", m.uid);                    // std::optional: the field may be missing
///     fields.with_default("stop", m.stop, {}); // may be missing; not written if equal to {}
///     fields.may_be_missing("mode", m.mode);         // written always, also when it is the
///     default
///   }
///   Json j = to_field(message);
///   Result<Message> m = read_fields<Message>(j);
///
/// The reader treats the JSON as input. It stops at the first field that is missing, has another
/// type or is out of range, and returns BadRequest with the field, the expected value and the
/// actual one. Integers must be JSON integers; the reader never rounds, wraps or truncates.
/// Internal to ipc/control: it includes all of nlohmann/json.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/tokens/text_identity.hpp"

namespace leasehold {

/// The type is one of Ts; constrains a describe() that takes const and mutable values.
template <class T, class... Ts>
concept Is = (std::same_as<std::remove_const_t<T>, Ts> || ...);

// ---------------------------------------------------------------- rules

/// Both bounds are inclusive.
template <class Number>
struct Between {
  Number low = std::numeric_limits<Number>::lowest();
  Number high = std::numeric_limits<Number>::max();
};

enum class TextRule : std::uint8_t {
  Any,
  NonEmpty,
  Name,  ///< See TenantId::parse.
  NameOrEmpty,
  LeaseOrEmpty,
  SocketPath,  ///< Fits into sockaddr_un.
  HexKey,      ///< 64 lower-case hex digits: 256 bits.
  RevokeReasonOrEmpty,
  Sentence,  ///< 1 to 200 bytes on one line: free text, such as an operator's reason.
  SentenceOrEmpty,
  RelativePath,  ///< 1 to 255 bytes on one line: no "/" in front, no part that is "." or ".." or
                 ///< empty.
  Label,         ///< Up to 256 bytes on one line: the name of a model or of a part of it.
};

/// A text as a Sentence: cut to the size, and "?" for what is not a printable character.
std::string to_sentence(std::string_view text);

/// The text must be one of these words.
struct Choice {
  std::span<const std::string_view> words;
};

/// Maximum length of an array. The rules that follow MaxItems apply to each element.
struct MaxItems {
  std::size_t items;
};

/// Number of enumerators. Their values start at zero and each has a `name()`.
struct EnumCount {
  int count;
};

// ---------------------------------------------------------------- one value

/// A value that breaks its rule. `where` is the path below the field.
struct Mismatch {
  std::string where;
  std::string expected;
  std::string got;
};
using Problem = std::optional<Mismatch>;

Problem mismatch(const nlohmann::json& got, std::string expected);
/// Checks the text of an option that becomes such a field. Returns what is wrong; empty if nothing
/// is.
std::string check_text(TextRule rule, std::string_view text);
std::string expected_integer(std::string low, std::string high);
Problem too_many_items(std::size_t items, MaxItems most);
/// Sets `rows` to the length of the arrays in an object of arrays of equal length.
Problem count_rows(const nlohmann::json& json, std::size_t& rows);
/// The path of `inner` below `outer`: "clocks.reuse_ns", "messages[0].role".
std::string joined_path(std::string outer, const std::string& inner);

Problem from_field(const nlohmann::json& json, bool& out);
Problem from_field(const nlohmann::json& json, float& out, Between<float> range);
Problem from_field(const nlohmann::json& json, std::string& out, TextRule rule = TextRule::Any);
Problem from_field(const nlohmann::json& json, std::string& out, Choice choice);
Problem from_field(const nlohmann::json& json, LeaseId& out);
Problem from_field(const nlohmann::json& json, TextIdentity& out);
Problem from_field(const nlohmann::json& json, ModelName& out);

template <std::integral Number>
  requires(!std::same_as<Number, bool>)
Problem from_field(const nlohmann::json& json, Number& out, Between<Number> range = {}) {
  const auto take = [&](auto number) {
    if (std::cmp_less(number, range.low) || std::cmp_greater(number, range.high)) return false;
    out = static_cast<Number>(number);
    return true;
  };
  // is_number_integer() is true for unsigned numbers too, so test for unsigned first.
  if (json.is_number_unsigned() && take(json.get<std::uint64_t>())) return {};
  if (!json.is_number_unsigned() && json.is_number_integer() && take(json.get<std::int64_t>()))
    return {};
  return mismatch(json, expected_integer(std::to_string(range.low), std::to_string(range.high)));
}

template <class Tag>
Problem from_field(const nlohmann::json& json, StrongName<Tag>& out) {
  return from_field(json, out.value, TextRule::Name);
}

/// Ids are text in JSON because some readers store numbers as doubles, which cannot hold 64 bits.
Problem read_id(const nlohmann::json& json, std::uint64_t& out);

template <class Tag>
Problem from_field(const nlohmann::json& json, StrongId<Tag>& out) {
  return read_id(json, out.value);
}

template <class Enum>
  requires std::is_enum_v<Enum>
Problem from_field(const nlohmann::json& json, Enum& out, EnumCount enumerators) {
  std::string expected = "one of";
  for (int i = 0; i < enumerators.count; ++i) {
    if constexpr (requires { is_known(out); }) {
      if (!is_known(static_cast<Enum>(i))) continue;
    }
    const std::string_view word = name(static_cast<Enum>(i));
    if (json.is_string() && json.get_ref<const std::string&>() == word) {
      out = static_cast<Enum>(i);
      return {};
    }
    expected.append(" ").append(word);
  }
  return mismatch(json, std::move(expected));
}

class FieldReader;

/// An object with its own describe(), found by argument-dependent lookup.
template <class T>
concept Described = requires(T& value, FieldReader& fields) { describe(value, fields); };

template <Described Object>
Problem from_field(const nlohmann::json& json, Object& out);

/// The rule, if any, applies to each element.
template <class T, class... Rule>
Problem from_field(const nlohmann::json& json, std::vector<T>& out, Rule... rule) {
  if (!json.is_array()) return mismatch(json, "an array");
  out.clear();
  out.reserve(json.size());
  for (const auto& element : json) {
    T value{};
    if (Problem problem = from_field(element, value, rule...)) {
      problem->where = joined_path("[" + std::to_string(out.size()) + "]", problem->where);
      return problem;
    }
    out.push_back(std::move(value));
  }
  return {};
}

/// Checks the length before reading any element, so an oversized array costs nothing.
template <class T, class... Rule>
Problem from_field(const nlohmann::json& json, std::vector<T>& out, MaxItems most, Rule... rule) {
  if (json.is_array() && json.size() > most.items) return too_many_items(json.size(), most);
  return from_field(json, out, rule...);
}

template <class T>
  requires(std::is_arithmetic_v<T> || std::same_as<T, std::string>)
nlohmann::json to_field(const T& value) {
  return value;
}
template <class T>
  requires(std::is_enum_v<T>)
nlohmann::json to_field(T value) {
  return std::string(name(value));
}
inline nlohmann::json to_field(LeaseId lease) {
  return to_string(lease);
}
inline nlohmann::json to_field(const TextIdentity& identity) {
  return to_string(identity);
}
inline nlohmann::json to_field(const ModelName& model) {
  return model.text;
}
template <class Tag>
nlohmann::json to_field(StrongId<Tag> id) {
  return std::to_string(id.value);
}
template <class Tag>
nlohmann::json to_field(const StrongName<Tag>& text) {
  return text.value;
}
template <Described Object>
nlohmann::json to_field(const Object& object);
template <class T>
nlohmann::json to_field(const std::vector<T>& values) {
  nlohmann::json array = nlohmann::json::array();
  for (const auto& value : values) array.push_back(to_field(value));
  return array;
}

// ---------------------------------------------------------------- one object

class FieldWriter {
 public:
  template <class T, class... Rule>
  void field(const char* key, const T& value, Rule...) {
    json_[key] = to_field(value);
  }
  template <class T, class... Rule>
  void field(const char* key, const std::optional<T>& value, Rule...) {
    if (value) json_[key] = to_field(*value);
  }
  template <class T, class... Rule>
  void with_default(const char* key, const T& value, const T& default_value, Rule...) {
    if (value != default_value) json_[key] = to_field(value);
  }
  template <class T, class... Rule>
  void may_be_missing(const char* key, const T& value, Rule... rule) {
    field(key, value, rule...);
  }
  /// Writes an object with `describe` instead of the description of its type.
  template <class Object, class Describe>
  void object(const char* key, const Object& value, Describe describe) {
    FieldWriter inner;
    describe(value, inner);
    json_[key] = std::move(inner).take();
  }
  /// Writes a list of objects as an array for each key; messages/json_columns.hpp.
  template <class T>
  void columns(const char* key, const std::vector<T>& values);
  nlohmann::json take() && { return std::move(json_); }

 private:
  nlohmann::json json_ = nlohmann::json::object();
};

/// Adds the field to the path of its problem, if there is one. `found` is null for a missing field.
Problem problem_at(const char* key, const nlohmann::json* found, Problem problem);
std::optional<Error> error_of(const Problem& problem);
/// The value of a missing field.
extern const nlohmann::json kMissingField;

/// Reads fields from where `Source` finds them: `const nlohmann::json* find(const char* key)`
/// returns null for a missing field.
template <class Source>
class FieldReaderFrom {
 public:
  explicit FieldReaderFrom(Source source) : source_(std::forward<Source>(source)) {}

  template <class T, class... Rule>
  void field(const char* key, T& value, Rule... rule) {
    if (problem_) return;
    const nlohmann::json* found = source_.find(key);
    note(key, found, from_field(found ? *found : kMissingField, value, rule...));
  }
  template <class T, class... Rule>
  void field(const char* key, std::optional<T>& value, Rule... rule) {
    if (problem_) return;
    const nlohmann::json* found = source_.find(key);
    if (found) note(key, found, from_field(*found, value.emplace(), rule...));
  }
  /// A missing field leaves `value` unchanged.
  template <class T, class... Rule>
  void with_default(const char* key, T& value, const T&, Rule... rule) {
    if (problem_) return;
    const nlohmann::json* found = source_.find(key);
    if (found) note(key, found, from_field(*found, value, rule...));
  }
  template <class T, class... Rule>
  void may_be_missing(const char* key, T& value, Rule... rule) {
    with_default(key, value, value, rule...);
  }

  Problem take_problem() && { return std::move(problem_); }
  /// Returns nothing when every field was valid.
  std::optional<Error> error() const { return error_of(problem_); }

 protected:
  void note(const char* key, const nlohmann::json* found, Problem problem) {
    problem_ = problem_at(key, found, std::move(problem));
  }

  Source source_;
  Problem problem_;
};

struct ObjectFields {
  const nlohmann::json& json;
  const nlohmann::json* find(const char* key) const;
};

class FieldReader : public FieldReaderFrom<ObjectFields> {
 public:
  /// `json` must outlive the reader.
  explicit FieldReader(const nlohmann::json& json);

  template <class Object, class Describe>
  void object(const char* key, Object& value, Describe describe) {
    if (problem_) return;
    const nlohmann::json* found = source_.find(key);
    FieldReader inner(found ? *found : kMissingField);
    describe(value, inner);
    note(key, found, std::move(inner).take_problem());
  }
  /// Reads what FieldWriter::columns wrote; messages/json_columns.hpp.
  template <class T>
  void columns(const char* key, std::vector<T>& values);
};

template <Described Object>
Problem from_field(const nlohmann::json& json, Object& out) {
  FieldReader reader(json);
  describe(out, reader);
  return std::move(reader).take_problem();
}

template <Described Object>
nlohmann::json to_field(const Object& object) {
  FieldWriter writer;
  describe(object, writer);
  return std::move(writer).take();
}

template <Described Message>
Result<Message> read_fields(const nlohmann::json& json) {
  FieldReader reader(json);
  Message message;
  describe(message, reader);
  if (auto error = reader.error()) return std::unexpected(*std::move(error));
  return message;
}

}  // namespace leasehold

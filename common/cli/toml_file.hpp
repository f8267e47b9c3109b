/// Reads the keys of a TOML file. Only this file's source uses the TOML library.
///
/// Source: TOML 1.0.0, by toml++. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace leasehold {

enum class TomlType : std::uint8_t { Boolean, Integer, Float, String, Other };

struct TomlValue {
  TomlType type;
  /// "true", "42", the string without quotes; for Other its type, such as "table".
  std::string text;
};

struct TomlEntry {
  std::string key;
  std::vector<TomlValue> values;  ///< One value unless the entry is an array.
  bool is_array = false;
  std::uint32_t line = 1;

  std::string_view type_name() const;  ///< "string", "array of strings", "table".
};

/// The keys of a TOML document in the order of the file. Errors: BadRequest with
/// "LINE: what is wrong" for text that is not TOML, also for a key given twice.
Result<std::vector<TomlEntry>> parse_toml(std::string_view text);

/// `text` as a TOML string, with its quotes. `text` is UTF-8.
std::string toml_string(std::string_view text);

}  // namespace leasehold

/// Values as text, the way Python writes them.
#pragma once

#include <string>

#include "worker/text/chat/jinja/runtime.hpp"

namespace leasehold::jinja {

/// str(): what `{{ value }}` prints. Undefined is empty.
Result<std::string> to_text(Runtime& runtime, const Value& value);

/// repr(): how a value stands inside a printed list.
Result<std::string> to_repr(Runtime& runtime, const Value& value);

/// float.__repr__: the shortest digits that read back as the same number, with ".0" for a whole
/// one.
std::string float_text(double number);

struct JsonStyle {
  std::optional<std::string> indent;  ///< One level's worth; none: all on one line.
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ascii_only = false;
  bool sort_keys = false;
};

/// json.dumps. Errors: BadRequest for what JSON has no word for, such as an undefined value.
Result<std::string> to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace leasehold::jinja

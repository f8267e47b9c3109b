/// Formats values as text, as Python does.
#pragma once

#include <string>

#include "worker/text/chat/jinja/runtime.hpp"

namespace leasehold::jinja {

/// str(): the output of `{{ value }}`. Undefined is empty. A value that is not a text counts as the
/// client's text.
Result<MarkedText> to_text(Runtime& runtime, const Value& value);

/// float.__repr__: the shortest digits that parse to the same number, with ".0" for integers.
std::string float_text(double number);

struct JsonStyle {
  std::optional<std::string> indent;  ///< Indentation per level; empty: one line.
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ascii_only = false;
  bool sort_keys = false;
};

/// json.dumps. The result counts as the client's. Errors: BadRequest for values that JSON cannot
/// represent, such as undefined.
Result<std::string> to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace leasehold::jinja

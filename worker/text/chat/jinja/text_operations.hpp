/// Work on text that both filters and methods do.
#pragma once

#include "worker/text/chat/jinja/runtime.hpp"

namespace leasehold::jinja {

enum class Case : std::uint8_t { Upper, Lower, Title, Capital };

/// Errors: UnsupportedModel for letters beyond ASCII, whose cases we do not know.
Result<Value> convert_case(Runtime& runtime, std::string_view text, Case wanted);

struct StripSides {
  bool left = true;
  bool right = true;
};
/// Without the space, or the characters of `strip_chars`, at its ends.
Result<Value> strip_text(Runtime& runtime, std::string_view text, const Value& strip_chars,
                         StripSides ends);

/// Up to `most` places are replaced; all when it is negative. Errors: as Runtime's.
Result<Value> replace_text(Runtime& runtime, std::string_view text, std::string_view from,
                           std::string_view to, std::int64_t most);

/// The parts' texts with `separator` between them.
Result<Value> join_text(Runtime& runtime, std::string_view separator,
                        const std::vector<Value>& parts);

/// The text of a parameter. Errors: BadRequest naming the parameter when it is none.
Result<std::string> require_text(Runtime& runtime, std::string_view what, const Value& value);
Result<std::int64_t> require_integer(Runtime& runtime, std::string_view what, const Value& value);

}  // namespace leasehold::jinja

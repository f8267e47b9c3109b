/// Text operations shared by filters and methods.
#pragma once

#include "worker/text/chat/jinja/runtime.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {

enum class Case : std::uint8_t { Upper, Lower, Title, Capital };

/// Simple case mappings. Each character keeps its origin. Errors: UnsupportedModel for letters with
/// special case mappings, and for the title case of letters beyond ASCII.
Result<Value> convert_case(Runtime& runtime, const MarkedText& text, Case wanted);

/// Replaces each character by the text that `map` returns for it. The text gets the character's
/// origin.
template <class Map>
MarkedText map_characters(const MarkedText& text, Map map) {
  MarkedText out;
  for (const std::string_view character : characters_of(text.bytes()))
    out.append(map(character), text.origin_of(character));
  return out;
}

struct StripSides {
  bool left = true;
  bool right = true;
};
/// Removes space, or the characters of `strip_chars`, at the chosen ends.
Result<Value> strip_text(Runtime& runtime, const MarkedText& text, const Value& strip_chars,
                         StripSides ends);

/// Replaces at most `most` occurrences; all if `most` is negative.
Result<Value> replace_text(Runtime& runtime, const MarkedText& text, std::string_view from,
                           const MarkedText& to, std::int64_t most);

/// Joins the texts of the parts with `separator`.
Result<Value> join_text(Runtime& runtime, const MarkedText& separator,
                        const std::vector<Value>& parts);

/// The text or integer of a parameter. Errors: BadRequest naming the parameter for other types.
Result<MarkedText> require_marked_text(Runtime& runtime, std::string_view what, const Value& value);
Result<std::string> require_text(Runtime& runtime, std::string_view what, const Value& value);
Result<std::int64_t> require_integer(Runtime& runtime, std::string_view what, const Value& value);

}  // namespace leasehold::jinja

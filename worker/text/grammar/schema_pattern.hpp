/// Compiles JSON schema's `pattern` to symbols for the content of a JSON string.
///
/// The subset: characters, `.`, classes `[a-z]` `[^…]`, groups `(…)` `(?:…)`, alternatives `|`,
/// `* + ? {m} {m,} {m,n}` (also lazy), the escapes \d \D \w \W \s \S
/// \t \n \r \f \v \xHH \uHHHH and of punctuation, `^` at the very front and `$` at the very end.
/// Without an anchor, any text may come before or after, as JSON schema defines. Refused by name:
/// lookaround, backreferences, \b, \p{…}, anchors elsewhere.
#pragma once

#include <string_view>

#include "worker/text/grammar/grammar_builder.hpp"

namespace leasehold {

/// One character of the class in a JSON string: the character, or its escape if it needs one.
Symbols json_character(GrammarBuilder& builder, const CharacterClass& characters);

/// Errors: BadRequest with the position in the pattern.
Result<Symbols> parse_pattern(std::string_view pattern, GrammarBuilder& builder);

}  // namespace leasehold

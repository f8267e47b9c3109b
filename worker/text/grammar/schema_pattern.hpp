/// Regular expressions of JSON schema's `pattern`, as the inside of a JSON string.
///
/// The subset: characters, `.`, classes `[a-z]` `[^…]`, groups `(…)` `(?:…)`, alternatives `|`,
/// `* + ? {m} {m,} {m,n}` (also lazy ones: the texts are the same), the escapes \d \D \w \W \s \S
/// \t \n \r \f \v \xHH \uHHHH and of punctuation, `^` at the very front and `$` at the very end.
/// Without those two anything may stand before or after, as JSON schema has it. Refused by name:
/// lookaround, backreferences, \b, \p{…}, anchors elsewhere.
#pragma once

#include <string_view>

#include "worker/text/grammar/grammar_builder.hpp"

namespace leasehold {

/// One character of the class as JSON strings spell it: itself, or its escape where it needs one.
Symbols json_character(GrammarBuilder& builder, const CharacterClass& characters);

/// Errors: a sentence with the character's place, BadRequest.
Result<Symbols> parse_pattern(std::string_view pattern, GrammarBuilder& builder);

}  // namespace leasehold

/// Parses the regular expressions of JSON schema's `pattern`, and compiles them to symbols or to an
/// automaton.
///
/// The supported subset: characters, `.`, classes `[a-z]` `[^…]`, groups `(…)` `(?:…)`
/// `(?<name>…)`, alternatives `|`, `* + ? {m} {m,} {m,n}` (also lazy), the escapes \d \D \w \W \s
/// \S \t \n \r \f \v \0 \xHH \uHHHH and of punctuation. `^` may be at the front and `$` at the end
/// of the pattern, of its alternatives, and of groups at that end. Refused by name: lookaround,
/// backreferences, \b, \p{…}, anchors elsewhere.
#pragma once

#include <string_view>

#include "worker/text/grammar/grammar_builder.hpp"
#include "worker/text/grammar/text_automaton.hpp"

namespace leasehold {

struct CountRange {
  std::uint64_t min = 0;
  std::optional<std::uint64_t> max;
  bool is_empty() const { return max && *max < min; }
  bool contains(const CountRange& other) const {
    return min <= other.min && (!max || (other.max && *other.max <= *max));
  }
};

struct Pattern {
  enum class Kind : std::uint8_t { Character, Sequence, Choice, Repeat, Front, Back };
  Kind kind = Kind::Sequence;
  CharacterClass characters;   ///< Only for Character.
  std::vector<Pattern> parts;  ///< One for Repeat, any number for Sequence and Choice.
  Repetition times;            ///< Only for Repeat.
};

/// What a pattern without anchors matches.
enum class PatternMatch : std::uint8_t {
  Somewhere,  ///< Any text may come before and after, as JSON schema defines.
  Whole,      ///< The match is the whole text.
};

/// Parses a pattern. The result describes whole texts, so it has no Front and no Back. Errors, with
/// the position in the pattern: MalformedMessage for what every dialect refuses, BadRequest for
/// what is not supported.
Result<Pattern> parse_pattern(std::string_view pattern,
                              PatternMatch match = PatternMatch::Somewhere);

/// The lengths of a pattern's texts, in characters. Lengths are cut at 10^12.
CountRange lengths_of(const Pattern& pattern);

/// How the characters of a text are written.
enum class TextForm : std::uint8_t {
  JsonString,  ///< The content of a JSON string: characters are escaped only if they must be.
  Plain,
};

/// Symbols that match one character of the class.
Symbols character_symbols(GrammarBuilder& builder, const CharacterClass& characters, TextForm form);

Symbols text_symbols(const Pattern& pattern, GrammarBuilder& builder,
                     TextForm form = TextForm::JsonString);

/// Returns nothing when the budget is used up.
std::optional<TextAutomaton> automaton_of(const Pattern& pattern, WorkBudget& work);

}  // namespace leasehold

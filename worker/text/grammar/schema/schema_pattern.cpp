#include "worker/text/grammar/schema/schema_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

const CharacterClass kDigits{{'0', '9'}};
const CharacterClass kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
// ECMA-262: white space and line terminators.
const CharacterClass kSpaces{{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                             {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                             {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CharacterClass kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

constexpr std::string_view kControlLetters = "tnrfv";
constexpr std::string_view kControlCharacters = "\t\n\r\f\v";

/// The class of the escape with this letter; empty if the letter has none.
CharacterClass class_of_letter(char letter) {
  if (letter == 'd' || letter == 'D') return letter == 'd' ? kDigits : complement_of(kDigits);
  if (letter == 'w' || letter == 'W') return letter == 'w' ? kWord : complement_of(kWord);
  if (letter == 's' || letter == 'S') return letter == 's' ? kSpaces : complement_of(kSpaces);
  return {};
}

using Kind = Pattern::Kind;

constexpr std::size_t kMaxPatternNodes = 1 << 14;

Pattern characters(CharacterClass which) {
  return {.kind = Kind::Character, .characters = std::move(which), .parts = {}, .times = {}};
}
Pattern compound(Kind kind, std::vector<Pattern> parts) {
  return {.kind = kind, .characters = {}, .parts = std::move(parts), .times = {}};
}

class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : all_(pattern), rest_(pattern) {}

  Result<Pattern> read() {
    Pattern pattern = TRY(parse_alternatives(0));
    if (!rest_.empty()) return malformed("')' without '('");
    return pattern;
  }

 private:
  bool starts_with(char c) const { return rest_.starts_with(c); }
  bool take(char c) {
    if (!starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::unexpected<Error> error(std::string_view what, Errc code = Errc::BadRequest) const {
    return fail(code,
                fmt::format("{}, at byte {} of the pattern", what, all_.size() - rest_.size()));
  }
  std::unexpected<Error> malformed(std::string_view what) const {
    return error(what, Errc::MalformedMessage);
  }

  Result<Pattern> parse_alternatives(int nesting) {
    if (nesting > kMaxGrammarNesting) return error("groups are nested too deeply");
    std::vector<Pattern> alternatives;
    do {
      alternatives.push_back(TRY(parse_sequence(nesting)));
    } while (take('|'));
    if (alternatives.size() == 1) return std::move(alternatives.front());
    return compound(Kind::Choice, std::move(alternatives));
  }

  Result<Pattern> parse_sequence(int nesting) {
    std::vector<Pattern> parts;
    while (!rest_.empty() && !starts_with('|') && !starts_with(')')) {
      if (++n_nodes_ > kMaxPatternNodes)
        return error("the pattern is too large up to here; make it smaller");
      Pattern atom = TRY(parse_atom(nesting));
      const bool is_anchor = atom.kind == Kind::Front || atom.kind == Kind::Back;
      parts.push_back(is_anchor ? std::move(atom) : TRY(parse_quantifier(std::move(atom))));
    }
    return compound(Kind::Sequence, std::move(parts));
  }

  Result<Pattern> parse_atom(int nesting) {
    if (take('^')) return compound(Kind::Front, {});
    if (take('$')) return compound(Kind::Back, {});
    if (take('(')) return parse_group(nesting);
    if (take('[')) return parse_class();
    if (take('.')) return characters(complement_of(kLineEnds));
    if (std::string_view("*+?").contains(rest_.front()))
      return error(fmt::format("'{}' is not supported here", rest_.front()));
    return characters(TRY(parse_member()));
  }

  Result<Pattern> parse_group(int nesting) {
    if (take('?') && !take(':')) {
      const bool is_named = rest_.starts_with("<") && !rest_.starts_with("<=") &&
                            !rest_.starts_with("<!") && rest_.contains('>');
      if (!is_named) return error("of groups that begin with '(?' only '(?:' is supported");
      rest_.remove_prefix(rest_.find('>') + 1);
    }
    Pattern inside = TRY(parse_alternatives(nesting + 1));
    if (!take(')')) return malformed("a '(' is not closed");
    return inside;
  }

  Result<Pattern> parse_class() {
    const bool inverted = take('^');
    CharacterClass all;
    while (!take(']')) {
      if (rest_.empty()) return malformed("a '[' is not closed");
      const CharacterClass low = TRY(parse_class_member());
      all.insert(all.end(), low.begin(), low.end());
      const bool low_is_one = low.size() == 1 && low[0].low == low[0].high;
      if (!low_is_one || !starts_with('-') || rest_.starts_with("-]")) continue;
      (void)take('-');
      if (rest_.empty()) return malformed("a '[' is not closed");
      const CharacterClass high = TRY(parse_class_member());
      const bool is_range =
          high.size() == 1 && high[0].low == high[0].high && low[0].low <= high[0].low;
      if (!is_range) return error("expected a range of characters");
      all.push_back({low[0].low, high[0].low});
    }
    return characters(inverted ? complement_of(all) : all);
  }

  /// Inside a class, \b is a backspace.
  Result<CharacterClass> parse_class_member() {
    if (!rest_.starts_with("\\b")) return parse_member();
    rest_.remove_prefix(2);
    return CharacterClass{{'\b', '\b'}};
  }

  /// Parses a character, or an escape of a character or a class.
  Result<CharacterClass> parse_member() {
    if (!take('\\')) {
      const std::uint32_t c = take_code_point(rest_);
      return CharacterClass{{c, c}};
    }
    if (rest_.empty()) return malformed("a '\\' at the end");
    const char letter = rest_.front();
    if (CharacterClass known = class_of_letter(letter); !known.empty()) {
      (void)take(letter);
      return known;
    }
    const std::uint32_t c = TRY(parse_escaped(letter));
    return CharacterClass{{c, c}};
  }

  Result<std::uint32_t> parse_escaped(char letter) {
    if (letter == 'x' || letter == 'u') return parse_hex(letter == 'x' ? 2 : 4);
    if (const auto at = kControlLetters.find(letter); at != std::string_view::npos) {
      (void)take(letter);
      return static_cast<std::uint32_t>(kControlCharacters[at]);
    }
    if (rest_.starts_with("0") && !(rest_.size() > 1 && rest_[1] >= '0' && rest_[1] <= '9')) {
      (void)take('0');
      return 0u;
    }
    const bool is_word = (letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') ||
                         (letter >= 'a' && letter <= 'z');
    if (is_word) return error(fmt::format("'\\{}' is not supported", letter));
    return take_code_point(rest_);
  }

  Result<std::uint32_t> parse_hex(std::size_t digits) {
    rest_.remove_prefix(1);
    std::uint32_t value = TRY(take_hex(digits));
    const bool is_high = value >= 0xD800 && value < 0xDC00;
    if (is_high && rest_.starts_with("\\u")) {  // ECMA-262: a pair is one character
      rest_.remove_prefix(2);
      const std::uint32_t low = TRY(take_hex(4));
      if (low < 0xDC00 || low > 0xDFFF) return error("expected the second half of a pair");
      value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    }
    if (is_scalar_value(value)) return value;
    return error("half of a surrogate pair is not a character");
  }

  Result<std::uint32_t> take_hex(std::size_t digits) {
    std::uint32_t value = 0;
    const std::string_view text = rest_.substr(0, digits);
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (failed != std::errc{} || end != text.data() + digits)
      return error(fmt::format("expected {} hex digits of a character", digits));
    rest_.remove_prefix(digits);
    return value;
  }

  Result<Pattern> parse_quantifier(Pattern atom) {
    Repetition times;
    if (take('?')) {
      times.max = 1;
    } else if (take('+')) {
      times.min = 1;
    } else if (is_repetition()) {
      (void)take('{');
      times.min = TRY(parse_number());
      if (!take(',')) {
        times.max = times.min;
      } else if (!starts_with('}')) {
        times.max = TRY(parse_number());
      }
      if (!take('}') || (times.max && *times.max < times.min))
        return error("expected a repetition such as {2,5}");
    } else if (!take('*')) {
      return atom;
    }
    (void)take('?');  // lazy: matches the same texts
    Pattern repeated = compound(Kind::Repeat, {});
    repeated.parts.push_back(std::move(atom));
    repeated.times = times;
    return repeated;
  }

  /// A brace without a number after it is a character.
  bool is_repetition() const {
    return rest_.size() > 1 && rest_[0] == '{' && rest_[1] >= '0' && rest_[1] <= '9';
  }

  Result<std::uint32_t> parse_number() {
    std::uint32_t value = 0;
    const auto [end, failed] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (failed != std::errc{} || value > kMaxRepetitions)
      return error(fmt::format("expected a number from 0 to {}", kMaxRepetitions));
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  std::string_view all_;
  std::string_view rest_;
  std::size_t n_nodes_ = 0;
};

bool has_anchor(const Pattern& pattern) {
  return pattern.kind == Kind::Front || pattern.kind == Kind::Back ||
         std::ranges::any_of(pattern.parts, has_anchor);
}

/// Removes anchors at the ends that are open. Returns false for an anchor elsewhere. With
/// PatternMatch::Somewhere, adds any text at the open ends without an anchor.
bool close_ends(Pattern& pattern, PatternMatch match, bool open_front, bool open_back) {
  if (pattern.kind == Kind::Choice)
    return std::ranges::all_of(pattern.parts, [&](Pattern& part) {
      return close_ends(part, match, open_front, open_back);
    });
  if (pattern.kind != Kind::Sequence) pattern = compound(Kind::Sequence, {std::move(pattern)});
  std::vector<Pattern>& parts = pattern.parts;
  if (parts.size() == 1 && parts[0].kind == Kind::Choice && has_anchor(parts[0]))
    return close_ends(parts[0], match, open_front, open_back);
  if (open_front && !parts.empty() && parts.front().kind == Kind::Front) {
    parts.erase(parts.begin());
    return close_ends(pattern, match, false, open_back);
  }
  if (open_back && !parts.empty() && parts.back().kind == Kind::Back) {
    parts.pop_back();
    return close_ends(pattern, match, open_front, false);
  }
  const bool group_front = open_front && parts.size() > 1 && has_anchor(parts.front());
  const bool group_back = open_back && parts.size() > 1 && has_anchor(parts.back());
  if (group_front && !close_ends(parts.front(), match, true, false)) return false;
  if (group_back && !close_ends(parts.back(), match, false, true)) return false;
  if (has_anchor(pattern)) return false;
  if (match == PatternMatch::Whole) return true;
  Pattern anything = compound(Kind::Repeat, {characters(complement_of({}))});
  if (open_front && !group_front) parts.insert(parts.begin(), anything);
  if (open_back && !group_back) parts.push_back(std::move(anything));
  return true;
}

/// The JSON escape of a character that needs one.
std::string json_escape(std::uint32_t c) {
  if (c == '"' || c == '\\') return {'\\', static_cast<char>(c)};
  constexpr std::string_view kControls = "\b\f\n\r\t";
  constexpr std::string_view kLetters = "bfnrt";
  const std::size_t at = kControls.find(static_cast<char>(c));
  if (at != std::string_view::npos) return {'\\', kLetters[at]};
  return fmt::format("\\u{:04x}", c);
}

Symbols json_character(GrammarBuilder& builder, const CharacterClass& characters) {
  // The complement of `characters` within the alphabet, by De Morgan.
  CharacterClass others = complement_of(characters);
  others.insert(others.end(), {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  const CharacterClass plain = complement_of(std::move(others));
  std::set<std::uint32_t> escaped;
  for (const CodePoints& range : characters) {
    for (std::uint32_t c = range.low; c <= std::min<std::uint32_t>(range.high, '\\'); ++c)
      if (c < 0x20 || c == '"' || c == '\\') escaped.insert(c);
  }
  std::vector<Symbols> escapes;
  for (const std::uint32_t c : escaped) escapes.push_back(builder.text(json_escape(c)));
  if (plain.empty() && escapes.empty()) return builder.character({});  // matches nothing
  if (escapes.empty()) return builder.character(plain);
  // The escapes have their own rule, which other classes share.
  const Symbols all_escapes = builder.choice(std::move(escapes));
  return plain.empty() ? all_escapes : builder.choice({builder.character(plain), all_escapes});
}

}  // namespace

Symbols character_symbols(GrammarBuilder& builder, const CharacterClass& characters,
                          TextForm form) {
  return form == TextForm::Plain ? builder.character(characters)
                                 : json_character(builder, characters);
}

Symbols text_symbols(const Pattern& pattern, GrammarBuilder& builder, TextForm form) {
  switch (pattern.kind) {
    case Kind::Character:
      return character_symbols(builder, pattern.characters, form);
    case Kind::Repeat:
      return builder.repeat(text_symbols(pattern.parts[0], builder, form), pattern.times);
    case Kind::Choice: {
      std::vector<Symbols> alternatives;
      for (const Pattern& part : pattern.parts) {
        if (builder.is_full()) break;
        alternatives.push_back(text_symbols(part, builder, form));
      }
      return builder.choice(std::move(alternatives));
    }
    case Kind::Sequence: {
      Symbols sequence;
      for (const Pattern& part : pattern.parts) {
        if (builder.is_full() || sequence.size() > GrammarBuilder::kMaxSymbols) break;
        sequence = GrammarBuilder::join(std::move(sequence), text_symbols(part, builder, form));
      }
      return sequence.size() > GrammarBuilder::kMaxSymbols ? builder.as_rule(sequence) : sequence;
    }
    case Kind::Front:
    case Kind::Back:
      break;
  }
  return {};  // parse_pattern leaves no anchors
}

CountRange lengths_of(const Pattern& pattern) {
  static constexpr std::uint64_t kMost = 1'000'000'000'000;
  const auto cut = [](std::uint64_t n) { return std::min(n, kMost); };
  CountRange all{.min = 0, .max = 0};
  switch (pattern.kind) {
    case Kind::Character:
      return {.min = 1, .max = 1};
    case Kind::Sequence:
      for (const Pattern& part : pattern.parts) {
        const CountRange more = lengths_of(part);
        all.min = cut(all.min + more.min);
        all.max = all.max && more.max ? std::optional(cut(*all.max + *more.max)) : std::nullopt;
      }
      return all;
    case Kind::Choice:
      all.min = kMost;
      for (const Pattern& part : pattern.parts) {
        const CountRange one = lengths_of(part);
        all.min = std::min(all.min, one.min);
        all.max = all.max && one.max ? std::optional(std::max(*all.max, *one.max)) : std::nullopt;
      }
      return all;
    case Kind::Repeat: {
      const CountRange one = lengths_of(pattern.parts[0]);
      all.min = cut(one.min * pattern.times.min);
      all.max.reset();
      if (one.max && pattern.times.max) all.max = cut(*one.max * *pattern.times.max);
      if (one.max == 0u) all.max = 0;
      return all;
    }
    case Kind::Front:
    case Kind::Back:
      break;
  }
  return all;
}

Result<Pattern> parse_pattern(std::string_view pattern, PatternMatch match) {
  Pattern parsed = TRY(PatternParser(pattern).read());
  if (!close_ends(parsed, match, true, true))
    return fail(Errc::BadRequest,
                "'^' is supported at the front and '$' at the end of alternatives only");
  return parsed;
}

}  // namespace leasehold

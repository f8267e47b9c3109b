#include "worker/text/grammar/schema_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

/// Empty for other letters.
CharacterClass class_of_letter(char letter) {
  if (letter == 'd' || letter == 'D') return letter == 'd' ? kDigits : complement_of(kDigits);
  if (letter == 'w' || letter == 'W') return letter == 'w' ? kWord : complement_of(kWord);
  if (letter == 's' || letter == 'S') return letter == 's' ? kSpaces : complement_of(kSpaces);
  return {};
}

class PatternParser {
 public:
  PatternParser(std::string_view pattern, GrammarBuilder& builder)
      : all_(pattern), rest_(pattern), builder_(builder) {}

  Result<Symbols> read() {
    const bool from_front = take('^');
    const bool to_end = rest_.ends_with('$') && !rest_.ends_with("\\$");
    if (to_end) rest_.remove_suffix(1);
    std::vector<Symbols> alternatives = TRY(parse_alternatives(0));
    if (!rest_.empty()) return error("')' without '('");
    // In ^a|b$ each anchor belongs to one alternative.
    if (alternatives.size() > 1 && (from_front || to_end))
      return error("put alternatives next to '^' or '$' into a group");
    Symbols inside = builder_.choice(std::move(alternatives));
    const Symbols anything = builder_.repeat(json_character(builder_, complement_of({})), {});
    if (!from_front) inside = GrammarBuilder::join(anything, inside);
    if (!to_end) inside = GrammarBuilder::join(std::move(inside), anything);
    return inside;
  }

 private:
  bool starts_with(char c) const { return rest_.starts_with(c); }
  bool take(char c) {
    if (!starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::unexpected<Error> error(std::string_view what) const {
    return fail(Errc::BadRequest,
                fmt::format("{}, at byte {} of the pattern", what, all_.size() - rest_.size()));
  }

  Result<std::vector<Symbols>> parse_alternatives(int nesting) {
    if (nesting > kMaxGrammarNesting) return error("groups are nested too deeply");
    std::vector<Symbols> alternatives;
    do {
      alternatives.push_back(TRY(parse_sequence(nesting)));
    } while (take('|'));
    return alternatives;
  }

  Result<Symbols> parse_sequence(int nesting) {
    Symbols sequence;
    while (!rest_.empty() && !starts_with('|') && !starts_with(')')) {
      Symbols atom = TRY(parse_atom(nesting));
      atom = TRY(parse_quantifier(std::move(atom)));
      sequence = GrammarBuilder::join(std::move(sequence), atom);
      if (builder_.is_full() || sequence.size() > GrammarBuilder::kMaxSymbols)
        return error("the pattern is too large up to here; make it smaller");
    }
    return sequence;
  }

  Result<Symbols> parse_atom(int nesting) {
    if (take('(')) return parse_group(nesting);
    if (take('[')) return parse_class();
    if (take('.')) return json_character(builder_, complement_of(kLineEnds));
    if (std::string_view("*+?{}]^$").contains(rest_.front()))
      return error(fmt::format("'{}' is not supported here", rest_.front()));
    return json_character(builder_, TRY(parse_member()));
  }

  Result<Symbols> parse_group(int nesting) {
    if (take('?') && !take(':'))
      return error("of groups that begin with '(?' only '(?:' is supported");
    std::vector<Symbols> alternatives = TRY(parse_alternatives(nesting + 1));
    if (!take(')')) return error("a '(' is not closed");
    return builder_.choice(std::move(alternatives));
  }

  Result<Symbols> parse_class() {
    const bool inverted = take('^');
    CharacterClass characters;
    while (!take(']')) {
      if (rest_.empty()) return error("a '[' is not closed");
      const CharacterClass low = TRY(parse_member());
      characters.insert(characters.end(), low.begin(), low.end());
      if (!starts_with('-') || rest_.starts_with("-]")) continue;
      (void)take('-');
      if (rest_.empty()) return error("a '[' is not closed");
      const CharacterClass high = TRY(parse_member());
      const bool is_range = low.size() == 1 && low[0].low == low[0].high && high.size() == 1 &&
                            high[0].low == high[0].high && low[0].low <= high[0].low;
      if (!is_range) return error("expected a range of characters");
      characters.push_back({low[0].low, high[0].low});
    }
    return json_character(builder_, inverted ? complement_of(characters) : characters);
  }

  /// A character, or an escape of a character or a class.
  Result<CharacterClass> parse_member() {
    if (!take('\\')) {
      const std::uint32_t c = take_code_point(rest_);
      return CharacterClass{{c, c}};
    }
    if (rest_.empty()) return error("a '\\' at the end");
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
    const bool is_word = letter == '_' || (letter >= '0' && letter <= '9') ||
                         (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z');
    if (is_word) return error(fmt::format("'\\{}' is not supported", letter));
    return take_code_point(rest_);
  }

  Result<std::uint32_t> parse_hex(std::size_t digits) {
    rest_.remove_prefix(1);
    std::uint32_t value = 0;
    const std::string_view text = rest_.substr(0, digits);
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (failed != std::errc{} || end != text.data() + digits || !is_scalar_value(value))
      return error(fmt::format("expected {} hex digits of a character", digits));
    rest_.remove_prefix(digits);
    return value;
  }

  Result<Symbols> parse_quantifier(Symbols atom) {
    Repetition times;
    if (take('?')) {
      times.max = 1;
    } else if (take('+')) {
      times.min = 1;
    } else if (take('{')) {
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
    return builder_.repeat(atom, times);
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
  GrammarBuilder& builder_;
};

/// The JSON escape of a character that needs one.
std::string json_escape(std::uint32_t c) {
  if (c == '"' || c == '\\') return {'\\', static_cast<char>(c)};
  constexpr std::string_view kControls = "\b\f\n\r\t";
  constexpr std::string_view kLetters = "bfnrt";
  const std::size_t at = kControls.find(static_cast<char>(c));
  if (at != std::string_view::npos) return {'\\', kLetters[at]};
  return fmt::format("\\u{:04x}", c);
}

}  // namespace

Symbols json_character(GrammarBuilder& builder, const CharacterClass& characters) {
  // The complement of `characters` within the alphabet, by De Morgan.
  CharacterClass others = complement_of(characters);
  others.insert(others.end(), {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  const CharacterClass plain = complement_of(std::move(others));
  std::vector<Symbols> alternatives;
  if (!plain.empty()) alternatives.push_back(builder.character(plain));
  for (const CodePoints& range : characters) {
    for (std::uint32_t c = range.low; c <= std::min<std::uint32_t>(range.high, '\\'); ++c) {
      if (c < 0x20 || c == '"' || c == '\\') alternatives.push_back(builder.text(json_escape(c)));
    }
  }
  if (alternatives.empty()) return builder.character({});  // an empty class matches nothing
  return builder.choice(std::move(alternatives));
}

Result<Symbols> parse_pattern(std::string_view pattern, GrammarBuilder& builder) {
  return PatternParser(pattern, builder).read();
}

}  // namespace leasehold

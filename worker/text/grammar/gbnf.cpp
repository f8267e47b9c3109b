#include "worker/text/grammar/gbnf.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/utf8.hpp"
#include "worker/text/grammar/gbnf_scanner.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kDefinedAs = "::=";

class GbnfParser {
 public:
  GbnfParser(std::string_view text, GrammarBuilder& builder) : text_(text), builder_(builder) {}

  Result<std::map<std::string, RuleId>> read() {
    for (text_.skip(true); !text_.at_end(); text_.skip(true)) TRY(parse_rule());
    for (const auto& [name, at] : first_reference_) {
      if (!builder_.is_defined(rules_.at(name)))
        return text_.error_at(at, fmt::format("rule '{}' is not defined", name));
    }
    return std::move(rules_);
  }

 private:
  RuleId rule_id(const std::string& name, std::size_t at) {
    const auto known = rules_.find(name);
    if (known != rules_.end()) return known->second;
    first_reference_.emplace(name, at);
    return rules_.emplace(name, builder_.declare(name)).first->second;
  }

  Result<void> parse_rule() {
    const std::size_t at = text_.position();
    const std::string name(text_.take_name());
    if (name.empty()) return text_.error("expected the name of a rule");
    text_.skip(false);
    if (!text_.take(kDefinedAs)) return text_.error("expected '::='");
    const RuleId rule = rule_id(name, at);
    if (builder_.is_defined(rule))
      return text_.error_at(at, fmt::format("rule '{}' is defined twice", name));
    text_.skip(true);
    builder_.define(rule, TRY(parse_alternatives(0)));
    if (text_.at_end() || text_.at_newline()) return {};
    return text_.error("expected the end of the line");
  }

  Result<std::vector<Symbols>> parse_alternatives(int nesting) {
    if (nesting > kMaxGrammarNesting) {
      return text_.error(fmt::format("parentheses are nested deeper than {}", kMaxGrammarNesting));
    }
    std::vector<Symbols> alternatives;
    do {
      text_.skip(nesting > 0 || !alternatives.empty());
      alternatives.push_back(TRY(parse_sequence(nesting)));
    } while (text_.take("|"));
    return alternatives;
  }

  Result<Symbols> parse_sequence(int nesting) {
    Symbols sequence;
    while (!text_.at_end() && !text_.at_newline() && !text_.starts_with('|') &&
           !text_.starts_with(')')) {
      Symbols item = TRY(parse_item(nesting));
      item = TRY(parse_repetitions(std::move(item)));
      sequence = GrammarBuilder::join(std::move(sequence), item);
      if (builder_.is_full() || sequence.size() > GrammarBuilder::kMaxSymbols) return too_large();
      text_.skip(nesting > 0);
    }
    return sequence;
  }

  std::unexpected<Error> too_large() const {
    return text_.error(fmt::format("the grammar has more than {} symbols up to here",
                                   GrammarBuilder::kMaxSymbols));
  }

  Result<Symbols> parse_item(int nesting) {
    if (text_.take("\"")) return parse_literal();
    if (text_.take("[")) return parse_class();
    if (text_.take(".")) return builder_.character(complement_of({}));
    if (text_.take("(")) return parse_group(nesting);
    const std::size_t at = text_.position();
    const std::string_view name = text_.take_name();
    if (name.empty()) {
      return text_.error("expected a literal, a character class, '.', '(' or the name of a rule");
    }
    return GrammarBuilder::rule(rule_id(std::string(name), at));
  }

  Result<Symbols> parse_group(int nesting) {
    const std::size_t at = text_.position() - 1;
    std::vector<Symbols> alternatives = TRY(parse_alternatives(nesting + 1));
    if (!text_.take(")")) return text_.error_at(at, "'(' is not closed; add ')'");
    return builder_.choice(std::move(alternatives));
  }

  Result<Symbols> parse_literal() {
    const std::size_t at = text_.position() - 1;
    std::string bytes;
    while (!text_.take("\"")) {
      if (text_.at_end() || text_.at_newline())
        return text_.error_at(at, "this '\"' is not closed on its line");
      append_utf8(bytes, TRY(text_.take_character()));
    }
    return builder_.text(bytes);
  }

  Result<Symbols> parse_class() {
    const std::size_t at = text_.position() - 1;
    const bool inverted = text_.take("^");
    CharacterClass characters;
    while (!text_.take("]")) {
      if (text_.at_end() || text_.at_newline())
        return text_.error_at(at, "this '[' is not closed on its line");
      characters.push_back(TRY(parse_range()));
    }
    return builder_.character(inverted ? complement_of(std::move(characters))
                                       : std::move(characters));
  }

  Result<CodePoints> parse_range() {
    const std::size_t at = text_.position();
    const std::uint32_t low = TRY(text_.take_character());
    if (!text_.starts_with('-') || text_.starts_with("-]")) return CodePoints{low, low};
    (void)text_.take("-");
    if (text_.at_end() || text_.at_newline()) return text_.error("the range has no end");
    const std::uint32_t high = TRY(text_.take_character());
    if (high < low) return text_.error_at(at, "the range ends before it begins");
    return CodePoints{low, high};
  }

  Result<Symbols> parse_repetitions(Symbols item) {
    while (true) {
      text_.skip_blanks();
      if (text_.take("*")) {
        item = builder_.repeat(item, {});
      } else if (text_.take("+")) {
        item = builder_.repeat(item, {.min = 1});
      } else if (text_.take("?")) {
        item = builder_.repeat(item, {.max = 1});
      } else if (text_.take("{")) {
        item = builder_.repeat(item, TRY(text_.take_repetition()));
      } else {
        return item;
      }
      if (builder_.is_full()) return too_large();
    }
  }

  GbnfScanner text_;
  GrammarBuilder& builder_;
  std::map<std::string, RuleId> rules_;
  std::map<std::string, std::size_t> first_reference_;
};

}  // namespace

Result<std::map<std::string, RuleId>> add_gbnf_rules(std::string_view text,
                                                     GrammarBuilder& builder) {
  TRY(check_utf8(text));
  return GbnfParser(text, builder).read();
}

Result<Grammar> parse_gbnf(std::string_view text) {
  GrammarBuilder builder;
  const std::map<std::string, RuleId> rules = TRY(add_gbnf_rules(text, builder));
  const auto root = rules.find("root");
  if (root == rules.end())
    return fail(Errc::BadRequest,
                "the grammar has no rule named 'root'; add one, matching begins there");
  return builder.finish(root->second);
}

}  // namespace leasehold

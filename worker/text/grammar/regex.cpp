#include "worker/text/grammar/regex.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/utf8.hpp"
#include "worker/text/grammar/bounded_text.hpp"

namespace leasehold {
namespace {

/// Most steps to build the automaton of an expression. An expression that needs more keeps its
/// structure.
constexpr std::size_t kMaxAutomatonSteps = 100'000;

/// The only text of a pattern that is a sequence of single characters; nothing for another pattern.
std::optional<std::string> word_of(const Pattern& pattern) {
  std::string word;
  for (const Pattern& part : pattern.parts) {
    const bool is_one = part.kind == Pattern::Kind::Character && part.characters.size() == 1 &&
                        part.characters[0].low == part.characters[0].high;
    if (!is_one) return std::nullopt;
    append_utf8(word, part.characters[0].low);
  }
  return pattern.kind == Pattern::Kind::Sequence ? std::optional(std::move(word)) : std::nullopt;
}

/// The automaton of a list of words, for which the general construction takes quadratic time.
std::optional<TextAutomaton> automaton_of_words(const Pattern& pattern) {
  if (pattern.kind != Pattern::Kind::Choice) return std::nullopt;
  std::vector<std::string> words;
  for (const Pattern& part : pattern.parts) {
    auto word = word_of(part);
    if (!word) return std::nullopt;
    words.push_back(*std::move(word));
  }
  return TextAutomaton::of_words(words);
}

/// A text has only one run in an automaton, but may have a parse for each alternative of an
/// expression. So an expression becomes an automaton if that takes little work.
Symbols symbols_of(const Pattern& pattern, GrammarBuilder& builder, WorkBudget& work) {
  WorkBudget trial{.left = std::min(work.left, kMaxAutomatonSteps)};
  auto automaton = automaton_of_words(pattern);
  if (!automaton) automaton = automaton_of(pattern, trial);
  const Symbols symbols = automaton
                              ? text_symbols(automaton->minimal(trial), builder, TextForm::Plain)
                              : text_symbols(pattern, builder, TextForm::Plain);
  work.spend(trial.spent);
  return symbols;
}

Result<Pattern> parsed(std::string_view regex) {
  auto pattern = parse_pattern(regex, PatternMatch::Whole);
  if (pattern) return pattern;
  return fail(Errc::BadRequest, fmt::format("regular expression: {}", pattern.error().detail));
}

}  // namespace

Result<void> check_regex(std::string_view regex) {
  (void)TRY(parsed(regex));
  return {};
}

Result<Grammar> compile_regex(std::string_view regex, WorkBudget& work) {
  const Pattern pattern = TRY(parsed(regex));
  GrammarBuilder builder;
  const RuleId root = builder.declare("regex");
  builder.define(root, {symbols_of(pattern, builder, work)});
  return builder.finish_reachable(root);
}

std::string regex_of_text(std::string_view text) {
  constexpr std::string_view kSyntax = R"(\^$.|?*+()[]{})";
  std::string regex;
  for (const char c : text) {
    if (kSyntax.contains(c)) regex += '\\';
    regex += c;
  }
  return regex;
}

}  // namespace leasehold

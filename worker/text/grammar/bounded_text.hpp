/// A set of texts cut to bounds of length, as a deterministic automaton whose loops are counted.
///
/// A state knows how many characters are left and how many are missing; where the bounds no longer
/// matter it forgets the numbers. A loop of one state is a counted repetition, so a long bound
/// costs few rules. A text has one run: a grammar follows it with a small number of parses.
#pragma once

#include "worker/text/grammar/schema_pattern.hpp"

namespace leasehold {

/// Lifetime: a value.
struct BoundedText {
  struct State {
    std::vector<TextAutomaton::Edge> edges;  ///< Disjoint.
    bool accepts = false;
    CharacterClass loop;                  ///< Comes up to `times` times before an edge or the end.
    std::uint32_t times = 0;              ///< Of `loop`.
    std::optional<std::uint32_t> beyond;  ///< The state after `times` + 1 of `loop`.
  };
  std::vector<State> states;  ///< 0 is the start. Empty: no text.
  /// Where several parts of a text can grow, or many states repeat, each has its share of the
  /// characters: some of the longest texts are missing.
  bool lacks_some = false;
};

/// Nothing when the bounds need too many states, or the budget is used up.
std::optional<BoundedText> within_lengths(const TextAutomaton& set, const CountRange& length,
                                          WorkBudget& work);

/// The texts of the set.
Symbols text_symbols(const BoundedText& set, GrammarBuilder& builder,
                     TextForm form = TextForm::JsonString);
Symbols text_symbols(const TextAutomaton& set, GrammarBuilder& builder,
                     TextForm form = TextForm::JsonString);

}  // namespace leasehold

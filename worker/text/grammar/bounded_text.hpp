/// A set of texts cut to bounds of length, as a deterministic automaton whose loops are counted.
///
/// Each state holds the number of characters that may follow before the maximum is reached,
/// and the number that must follow to reach the minimum, as far as these bounds still matter. A
/// loop of one state becomes a counted repetition, so a long bound costs few rules. Each text has
/// only one path through the automaton, so a grammar follows the text with a small number of
/// parses.
#pragma once

#include "worker/text/grammar/schema/schema_pattern.hpp"

namespace leasehold {

/// Lifetime: a value.
struct BoundedText {
  struct State {
    std::vector<TextAutomaton::Edge> edges;  ///< Disjoint.
    bool accepts = false;
    CharacterClass loop;                  ///< May repeat up to `times` before an edge or the end.
    std::uint32_t times = 0;              ///< Most repetitions of `loop`.
    std::optional<std::uint32_t> beyond;  ///< State after `times` + 1 repetitions.
  };
  std::vector<State> states;  ///< 0 is the start. Empty: no text.
  /// True if some of the longest texts are missing. Where several parts of a text can grow, or many
  /// states repeat, each part gets only a share of the characters.
  bool is_incomplete = false;
};

/// Cuts the set to the bounds. Returns nothing if that needs too many states or more than the
/// budget.
std::optional<BoundedText> within_lengths(const TextAutomaton& set, const CountRange& length,
                                          WorkBudget& work);

/// Symbols that match the texts of the set.
Symbols text_symbols(const BoundedText& set, GrammarBuilder& builder,
                     TextForm form = TextForm::JsonString);
Symbols text_symbols(const TextAutomaton& set, GrammarBuilder& builder,
                     TextForm form = TextForm::JsonString);

}  // namespace leasehold

/// Sets of texts as deterministic automata over characters, with the intersections, unions and
/// complements of patterns, lengths and lists of names.
///
/// Source: Hopcroft, Motwani, Ullman, "Introduction to Automata Theory" (subset and product
/// constructions).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "worker/text/grammar/grammar_builder.hpp"
#include "worker/text/grammar/work_budget.hpp"

namespace leasehold {

/// Lifetime: a value. Every state can reach an accepting one, except the start of the empty set.
class TextAutomaton {
 public:
  struct Edge {
    CodePoints on;
    std::uint32_t to;
  };
  struct State {
    std::vector<Edge> edges;  ///< Ascending and disjoint.
    bool accepts = false;
  };
  /// A nondeterministic automaton. Node 0 is the start. Empty edges consume nothing.
  struct Fragment {
    struct Node {
      std::vector<std::pair<CharacterClass, std::uint32_t>> edges;
      std::vector<std::uint32_t> empty_edges;
      bool accepts = false;
    };
    std::vector<Node> nodes;
  };

  static TextAutomaton of_length(std::uint32_t min, std::optional<std::uint32_t> max);
  static TextAutomaton of_words(const std::vector<std::string>& words);
  /// The following return nothing when the budget is used up.
  static std::optional<TextAutomaton> deterministic(const Fragment& fragment, WorkBudget& work);
  static std::optional<TextAutomaton> both(const TextAutomaton& a, const TextAutomaton& b,
                                           WorkBudget& work);
  static std::optional<TextAutomaton> either(const TextAutomaton& a, const TextAutomaton& b,
                                             WorkBudget& work);
  TextAutomaton complement() const;
  /// An automaton of the same texts with the fewest states. Returns a copy if finding them takes
  /// too many rounds or more than the budget.
  TextAutomaton minimal(WorkBudget& work) const;

  bool accepts(std::string_view text) const;
  bool is_empty() const { return states_[0].edges.empty() && !states_[0].accepts; }
  const std::vector<State>& states() const { return states_; }

 private:
  explicit TextAutomaton(std::vector<State> states);

  std::vector<State> states_;  ///< 0 is the start.
};

/// The states from which an accepting one can be reached. `predecessors[i]` has the states with an
/// edge to state i.
std::vector<bool> live_states(std::vector<bool> accepts,
                              const std::vector<std::vector<std::uint32_t>>& predecessors);

}  // namespace leasehold

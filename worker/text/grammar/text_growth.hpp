/// Finds the parts of a set of texts that can grow, which are the cycles of its automaton, and how
/// much text may follow each of them.
///
/// Source: Tarjan, "Depth-First Search and Linear Graph Algorithms" (1972).
#pragma once

#include "worker/text/grammar/text_automaton.hpp"

namespace leasehold {

/// Lifetime: a value. The set is not empty.
struct TextGrowth {
  static constexpr std::uint64_t kAny = UINT64_MAX;

  /// A strongly connected component: states that all reach each other.
  struct Part {
    std::uint32_t n_states = 0;
    bool grows = false;  ///< Has a cycle.
    /// Most growing parts on a path to the end, including this part.
    std::uint32_t max_growing_parts = 0;
    /// Most characters to the end, counted from the character that leaves the part.
    std::uint64_t longest_rest = 0;
  };
  struct State {
    std::uint32_t part = 0;
    std::uint64_t shortest = kAny;  ///< Fewest characters to the end.
    std::uint64_t longest = 0;      ///< Most characters to the end; kAny: unbounded.
  };

  explicit TextGrowth(const TextAutomaton& set);

  std::vector<Part> parts;  ///< Edges lead to the same part or an earlier one.
  std::vector<State> states;
};

}  // namespace leasehold

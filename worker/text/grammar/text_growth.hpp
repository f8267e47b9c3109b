/// Which parts of a set of texts can grow: the cycles of its automaton, and how much may follow
/// them.
///
/// Source: Tarjan, "Depth-First Search and Linear Graph Algorithms" (1972).
#pragma once

#include "worker/text/grammar/text_automaton.hpp"

namespace leasehold {

/// Lifetime: a value. The set is not empty.
struct TextGrowth {
  static constexpr std::uint64_t kAny = UINT64_MAX;

  /// States that reach each other.
  struct Part {
    std::uint32_t n_states = 0;
    bool grows = false;              ///< Has a cycle.
    std::uint32_t n_growing = 0;     ///< Parts that grow on one way to the end, with this one.
    std::uint64_t longest_rest = 0;  ///< Characters after leaving, with that which leaves.
  };
  struct State {
    std::uint32_t part = 0;
    std::uint64_t shortest = kAny;  ///< Characters to the end.
    std::uint64_t longest = 0;      ///< Likewise; kAny: unbounded.
  };

  explicit TextGrowth(const TextAutomaton& set);

  std::vector<Part> parts;  ///< Edges lead to the same part or an earlier one.
  std::vector<State> states;
};

}  // namespace leasehold

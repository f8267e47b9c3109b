/// Follows a grammar byte by byte.
///
/// A *stack* is the position of one parse of the text: the next symbol and, below it, the return
/// position of each entered rule. A *state* is the set of all stacks of a text. States and their
/// transitions are computed on first use and kept, so the part of a grammar in use becomes a finite
/// automaton.
///
/// Limits: a text nests at most kMaxDepth rules; deeper continuations are rejected. More than
/// kMaxStacks parses, or more states or stack entries than fit, set `overflowed`; results since
/// the last `retain` are then unreliable.
///
/// Lifetime: the grammar is shared. Threads: one.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "worker/text/grammar/grammar.hpp"

namespace leasehold {

class GrammarMatcher {
 public:
  using State = std::uint16_t;
  static constexpr State kDead = 0;  ///< The text cannot be continued.
  static constexpr std::uint32_t kMaxDepth = 1024;
  static constexpr std::size_t kMaxStacks = 512;
  static constexpr std::size_t kMaxStates = 1024;
  static constexpr std::size_t kMaxEntries = std::size_t{1} << 15;

  explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar);

  /// The state of the empty text. Valid until `retain`.
  State start();

  State next(State state, std::uint8_t byte) {
    const State known = (*rows_[state])[byte];
    return known != kUnknown ? known : find_next(state, byte);
  }

  /// The text may end here.
  bool may_end(State state) const;
  /// The text may end here and nothing can follow.
  bool must_end(State state) const;

  /// If memory runs low, drops all states but `state`. Returns the new id of `state`, and true if
  /// states were dropped; all other ids are then invalid.
  std::pair<State, bool> retain(State state);

  bool overflowed() const { return overflowed_; }

 private:
  static constexpr State kUnknown = 0xFFFF;
  static constexpr std::uint32_t kBottom =
      UINT32_MAX;  ///< Marks the end of a stack, below the entry of the root.
  static constexpr std::uint32_t kEnded = kBottom;  ///< The stack of a complete text.

  /// The next symbol and the entry below. The index of the top entry identifies the stack.
  struct Entry {
    std::uint32_t symbol;
    std::uint32_t below;
    std::uint32_t depth;
    std::uint32_t visited;  ///< Number of the expansion that visited it last.
  };
  using Stacks = std::vector<std::uint32_t>;
  using Row = std::array<State, 256>;

  void reset();
  State find_next(State state, std::uint8_t byte);
  void expand(std::uint32_t symbol, std::uint32_t below);
  void visit(std::uint32_t symbol, std::uint32_t below);
  void enter_rule(std::uint32_t symbol, std::uint32_t below);
  void leave_rule(std::uint32_t below);
  std::uint32_t entry(std::uint32_t symbol, std::uint32_t below);
  State state_of(Stacks stacks);

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, std::uint32_t> entry_index_;
  std::vector<const Stacks*> states_;
  std::map<Stacks, State> state_index_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pending_;  // of the expansion going on
  Stacks found_;
  std::uint32_t expansion_ = 0;
  bool overflowed_ = false;
};

}  // namespace leasehold

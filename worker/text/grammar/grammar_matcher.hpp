/// Follows a grammar byte by byte.
///
/// A *stack* is the position of one parse of the text: the next symbol and, below it, the return
/// position of each entered rule. A *state* is the set of all stacks of a text. States and their
/// transitions are computed on first use and kept, so the part of a grammar in use becomes a finite
/// automaton.
///
/// Work is counted and can be divided: a call that uses up its budget returns kUnfinished, and the
/// same call continues it. One unit is about the cost of a node in a mask's walk (piece_trie.hpp);
/// a visit to a stack's next symbol costs kVisitUnits. The work of a transition depends on its
/// state and byte alone, not on what was computed before.
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
#include "worker/text/grammar/work_budget.hpp"

namespace leasehold {

class GrammarMatcher {
 public:
  using State = std::uint16_t;
  static constexpr State kDead = 0;             ///< The text cannot be continued.
  static constexpr State kUnfinished = 0xFFFF;  ///< The budget was used up.
  static constexpr std::uint32_t kMaxDepth = 1024;
  static constexpr std::size_t kMaxStacks = 512;
  static constexpr std::size_t kMaxStates = 1024;
  static constexpr std::size_t kMaxEntries = std::size_t{1} << 15;
  static constexpr std::size_t kVisitUnits = 4;

  explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar);

  /// The state of the empty text. Valid until `retain`.
  State start(WorkBudget& budget);
  State start() {
    WorkBudget all = WorkBudget::unlimited();
    return start(all);
  }

  /// The next state if it was computed before, otherwise kUnfinished.
  State known(State state, std::uint8_t byte) const { return (*rows_[state])[byte]; }
  State next(State state, std::uint8_t byte, WorkBudget& budget) {
    const State found = known(state, byte);
    return found != kUnfinished ? found : find_next(state, byte, budget);
  }
  State next(State state, std::uint8_t byte) {
    WorkBudget all = WorkBudget::unlimited();
    return next(state, byte, all);
  }

  /// True if the text may end here.
  bool may_end(State state) const;
  /// True if the text may end here and nothing can follow.
  bool must_end(State state) const;

  /// If memory runs low, drops all states but `state`, in one uninterrupted call. Returns the new
  /// id of `state`, and true if states were dropped; all other ids are then invalid. Does nothing
  /// while a call is unfinished.
  std::pair<State, bool> retain(State state, WorkBudget& budget);
  std::pair<State, bool> retain(State state) {
    WorkBudget all = WorkBudget::unlimited();
    return retain(state, all);
  }

  bool overflowed() const { return overflowed_; }
  /// The rule whose alternatives took most of the work, by its name in the source.
  std::string busiest_rule() const;

 private:
  /// Marks the end of a stack, below the entry of the root.
  static constexpr std::uint32_t kBottom = UINT32_MAX;
  static constexpr std::uint32_t kEnded = kBottom;  ///< The stack of a complete text.

  /// The next symbol and the entry below. The index of the top entry identifies the stack.
  struct Entry {
    std::uint32_t symbol;
    std::uint32_t below;
    std::uint32_t depth;
    std::uint32_t visited;  ///< Number of the expansion that visited it last.
  };
  /// A rule that an expansion has entered, with alternatives that it has not visited.
  struct EnteredRule {
    std::uint32_t rule;
    std::uint32_t next_alternative;
    std::uint32_t below;
  };
  using Stacks = std::vector<std::uint32_t>;
  using Row = std::array<State, 256>;

  void reset();
  State find_next(State state, std::uint8_t byte, WorkBudget& budget);
  void begin_expansion();
  bool expand(WorkBudget& budget);
  State finish_expansion(WorkBudget& budget);
  void follow(std::uint32_t stack, std::uint8_t byte, WorkBudget& budget);
  void visit(std::uint32_t symbol, std::uint32_t below);
  void enter_rule(std::uint32_t symbol, std::uint32_t below);
  std::uint32_t entry(std::uint32_t symbol, std::uint32_t below);
  State state_of(Stacks stacks);

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, std::uint32_t> entry_index_;
  std::vector<const Stacks*> states_;
  std::map<Stacks, State> state_index_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::vector<std::uint64_t> rule_visits_;  // per rule: visits to its alternatives
  // The expansion that makes a state; it may be unfinished.
  bool is_expanding_ = false;
  std::uint32_t expansion_ = 0;
  std::size_t followed_ = 0;  // number of stacks of the previous state
  std::vector<EnteredRule> entered_;
  Stacks found_;
  bool found_end_ = false;
  bool overflowed_ = false;
};

}  // namespace leasehold

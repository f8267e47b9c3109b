/// Follows a grammar byte by byte.
///
/// A *stack* says where one reading of the text so far stands: the symbol that comes next and,
/// below it, where each rule that was entered goes on. All stacks a text can have are a *state*.
/// States, and what each byte makes of them, are found when first asked for and then remembered, so
/// a grammar turns into a finite automaton as far as it is used.
///
/// Bounds: a text may be nested kMaxDepth deep, deeper is not allowed; a text with more than
/// kMaxStacks readings at a time, or a walk over more states or stack entries than are kept, makes
/// `overflowed` true, and what was answered since `retain` is then not to be relied on.
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
  static constexpr State kDead = 0;  ///< No reading is left.
  static constexpr std::uint32_t kMaxDepth = 1024;
  static constexpr std::size_t kMaxStacks = 512;
  static constexpr std::size_t kMaxStates = 1024;
  static constexpr std::size_t kMaxEntries = std::size_t{1} << 15;

  explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar);

  /// Of the empty text. Valid until `retain`.
  State start();

  State next(State state, std::uint8_t byte) {
    const State known = (*rows_[state])[byte];
    return known != kUnknown ? known : find_next(state, byte);
  }

  /// The text may end here.
  bool may_end(State state) const;
  /// The text may end here and nothing can follow.
  bool must_end(State state) const;

  /// Makes room when much of it is used: forgets all states but `state`, whose new name it returns.
  /// True in `.second` when it did, and every other state's name then means nothing any more.
  std::pair<State, bool> retain(State state);

  bool overflowed() const { return overflowed_; }

 private:
  static constexpr State kUnknown = 0xFFFF;
  static constexpr std::uint32_t kBottom = UINT32_MAX;  ///< Below the root's own entry.
  static constexpr std::uint32_t kEnded = kBottom;  ///< The reading with nothing left: complete.

  /// The next symbol and the entry below; as the top of a stack it is that stack's name.
  struct Entry {
    std::uint32_t symbol;
    std::uint32_t below;
    std::uint32_t depth;
    std::uint32_t visited;  ///< The expansion that last came by.
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

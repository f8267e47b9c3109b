#include "worker/text/grammar/grammar_matcher.hpp"

#include <algorithm>
#include <utility>

#include "worker/text/grammar/grammar_check.hpp"

namespace leasehold {
namespace {

using Kind = GrammarSymbol::Kind;

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)), rule_visits_(grammar_->rules.size()) {
  reset();
}

void GrammarMatcher::reset() {
  entries_.clear();
  entry_index_.clear();
  states_.clear();
  state_index_.clear();
  rows_.clear();
  overflowed_ = false;
  (void)state_of({});  // kDead
}

GrammarMatcher::State GrammarMatcher::start(WorkBudget& budget) {
  if (!is_expanding_) {
    begin_expansion();
    entered_.push_back({grammar_->root, 0, kBottom});
  }
  return expand(budget) ? finish_expansion(budget) : kUnfinished;
}

GrammarMatcher::State GrammarMatcher::find_next(State state, std::uint8_t byte,
                                                WorkBudget& budget) {
  if (!is_expanding_) begin_expansion();
  const Stacks& stacks = *states_[state];
  while (true) {
    if (!expand(budget)) return kUnfinished;
    if (followed_ == stacks.size() || overflowed_) break;
    if (budget.left == 0) return kUnfinished;
    follow(stacks[followed_++], byte, budget);
  }
  const State next = finish_expansion(budget);
  (*rows_[state])[byte] = next;
  return next;
}

// ------------------------------------------------------------------------------- the expansion

void GrammarMatcher::begin_expansion() {
  is_expanding_ = true;
  ++expansion_;
  followed_ = 0;
  found_.clear();
  found_end_ = false;
}

/// Visits the alternatives of all entered rules. Returns false when the budget is used up.
bool GrammarMatcher::expand(WorkBudget& budget) {
  while (!entered_.empty() && !overflowed_) {
    if (budget.left == 0) return false;
    const auto [rule, position, below] = entered_.back();
    const std::vector<std::uint32_t>& alternatives = grammar_->rules[rule].alternatives;
    if (position + 1 >= alternatives.size()) {
      entered_.pop_back();
    } else {
      ++entered_.back().next_alternative;
    }
    ++rule_visits_[rule];
    budget.spend(kVisitUnits);
    visit(alternatives[position], below);
  }
  entered_.clear();
  return true;
}

GrammarMatcher::State GrammarMatcher::finish_expansion(WorkBudget& budget) {
  is_expanding_ = false;
  budget.spend(found_.size());
  return state_of(found_);
}

/// Adds the stacks that follow one stack of the previous state, if its next symbol contains the
/// byte.
void GrammarMatcher::follow(std::uint32_t stack, std::uint8_t byte, WorkBudget& budget) {
  budget.spend(1);
  if (stack == kEnded) return;
  const Entry top = entries_[stack];
  const GrammarSymbol& symbol = grammar_->symbols[top.symbol];
  if (!grammar_->byte_sets[symbol.index].contains(byte)) return;
  budget.spend(kVisitUnits);
  visit(top.symbol + 1, top.below);
}

/// Adds the stack to found_ if its next symbol is a set of bytes or the end of the text. Enters the
/// rule if the next symbol is a rule.
void GrammarMatcher::visit(std::uint32_t symbol, std::uint32_t below) {
  if (grammar_->symbols[symbol].kind == Kind::End) {
    if (below == kBottom) {
      if (!std::exchange(found_end_, true)) found_.push_back(kEnded);
      return;
    }
    // Continue with the symbol after the rule. That symbol is not an end, because `enter_rule` adds
    // no entry at an end.
    symbol = entries_[below].symbol;
    below = entries_[below].below;
  }
  const std::uint32_t here = entry(symbol, below);
  if (here == kBottom || entries_[here].visited == expansion_) return;
  entries_[here].visited = expansion_;
  if (grammar_->symbols[symbol].kind == Kind::Rule) return enter_rule(symbol, below);
  found_.push_back(here);
  overflowed_ = overflowed_ || found_.size() > kMaxStacks;
}

/// Tail call: a rule that is the last symbol returns to its caller's caller, so loops need no
/// stack.
void GrammarMatcher::enter_rule(std::uint32_t symbol, std::uint32_t below) {
  const bool is_last = grammar_->symbols[symbol + 1].kind == Kind::End;
  const std::uint32_t back = is_last ? below : entry(symbol + 1, below);
  if (!is_last && back == kBottom) return;
  entered_.push_back({grammar_->symbols[symbol].index, 0, back});
}

/// Returns kBottom beyond the depth limit or the entry limit.
std::uint32_t GrammarMatcher::entry(std::uint32_t symbol, std::uint32_t below) {
  const std::uint64_t key = std::uint64_t{symbol} << 32 | below;
  const auto known = entry_index_.find(key);
  if (known != entry_index_.end()) return known->second;
  const std::uint32_t depth = below == kBottom ? 1 : entries_[below].depth + 1;
  if (depth > kMaxDepth) return kBottom;
  overflowed_ = overflowed_ || entries_.size() >= kMaxEntries;
  if (overflowed_) return kBottom;
  const auto index = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({symbol, below, depth, 0});
  entry_index_.emplace(key, index);
  return index;
}

GrammarMatcher::State GrammarMatcher::state_of(Stacks stacks) {
  if (overflowed_) return kDead;
  std::ranges::sort(stacks);
  const auto known = state_index_.find(stacks);
  if (known != state_index_.end()) return known->second;
  overflowed_ = states_.size() >= kMaxStates;
  if (overflowed_) return kDead;
  const auto state = static_cast<State>(states_.size());
  const auto added = state_index_.emplace(std::move(stacks), state).first;
  states_.push_back(&added->first);
  rows_.push_back(std::make_unique<Row>());
  rows_.back()->fill(state == kDead ? kDead : kUnfinished);
  return state;
}

// ------------------------------------------------------------------------------------- queries

bool GrammarMatcher::may_end(State state) const {
  return !states_[state]->empty() &&
         states_[state]->back() == kEnded;  // the largest value, so it is last
}

bool GrammarMatcher::must_end(State state) const {
  return may_end(state) && states_[state]->size() == 1;
}

std::string GrammarMatcher::busiest_rule() const {
  const auto busiest = std::ranges::max_element(rule_visits_);
  const bool has_visits = busiest != rule_visits_.end() && *busiest > 0;
  const auto rule = has_visits ? busiest - rule_visits_.begin() : std::ptrdiff_t{grammar_->root};
  return rule_name(*grammar_, static_cast<std::uint32_t>(rule));
}

std::pair<GrammarMatcher::State, bool> GrammarMatcher::retain(State state, WorkBudget& budget) {
  if (state == kDead || is_expanding_) return {state, false};  // keeps `overflowed`
  const bool has_space = states_.size() < kMaxStates / 2 && entries_.size() < kMaxEntries / 2;
  if (has_space && !overflowed_) return {state, false};
  const std::vector<Entry> entries = entries_;
  const Stacks stacks = *states_[state];
  budget.spend(kVisitUnits * (entries.size() + states_.size()));
  reset();
  std::vector<std::uint32_t> moved(entries.size(), kBottom);
  Stacks kept;
  for (const std::uint32_t stack : stacks) {
    std::vector<std::uint32_t> path;  // entries that are not moved, from the top
    std::uint32_t at = stack;
    for (; at != kBottom && moved[at] == kBottom; at = entries[at].below) path.push_back(at);
    std::uint32_t below = at == kBottom ? kBottom : moved[at];
    for (; !path.empty(); path.pop_back())
      below = moved[path.back()] = entry(entries[path.back()].symbol, below);
    kept.push_back(below);
  }
  return {state_of(std::move(kept)), true};
}

}  // namespace leasehold

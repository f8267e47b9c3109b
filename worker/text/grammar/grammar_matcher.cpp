#include "worker/text/grammar/grammar_matcher.hpp"

#include <algorithm>

namespace leasehold {
namespace {

using Kind = GrammarSymbol::Kind;

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)) {
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

GrammarMatcher::State GrammarMatcher::start() {
  found_.clear();
  ++expansion_;
  for (const std::uint32_t alternative : grammar_->rules[grammar_->root].alternatives)
    expand(alternative, kBottom);
  return state_of(found_);
}

GrammarMatcher::State GrammarMatcher::find_next(State state, std::uint8_t byte) {
  found_.clear();
  ++expansion_;
  for (const std::uint32_t stack : *states_[state]) {
    if (stack == kEnded) continue;
    const Entry top = entries_[stack];
    const GrammarSymbol& symbol = grammar_->symbols[top.symbol];
    if (grammar_->byte_sets[symbol.index].contains(byte)) expand(top.symbol + 1, top.below);
  }
  const State next = state_of(found_);
  (*rows_[state])[byte] = next;
  return next;
}

/// Adds to found_ the stacks whose next symbol is a byte or the end.
void GrammarMatcher::expand(std::uint32_t symbol, std::uint32_t below) {
  pending_.assign(1, {symbol, below});
  while (!pending_.empty() && !overflowed_) {
    const auto [at, under] = pending_.back();
    pending_.pop_back();
    visit(at, under);
  }
}

void GrammarMatcher::visit(std::uint32_t symbol, std::uint32_t below) {
  const Kind kind = grammar_->symbols[symbol].kind;
  if (kind == Kind::End) return leave_rule(below);
  const std::uint32_t here = entry(symbol, below);
  if (here == kBottom || entries_[here].visited == expansion_) return;
  entries_[here].visited = expansion_;
  if (kind == Kind::Rule) return enter_rule(symbol, below);
  found_.push_back(here);
  overflowed_ = overflowed_ || found_.size() > kMaxStacks;
}

void GrammarMatcher::leave_rule(std::uint32_t below) {
  if (below != kBottom) {
    pending_.emplace_back(entries_[below].symbol, entries_[below].below);
  } else if (std::ranges::find(found_, kEnded) == found_.end()) {
    found_.push_back(kEnded);
  }
}

/// Tail call: a rule that is the last symbol returns to its caller's caller, so loops need no
/// stack.
void GrammarMatcher::enter_rule(std::uint32_t symbol, std::uint32_t below) {
  const bool is_last = grammar_->symbols[symbol + 1].kind == Kind::End;
  const std::uint32_t back = is_last ? below : entry(symbol + 1, below);
  if (!is_last && back == kBottom) return;
  for (const std::uint32_t alternative :
       grammar_->rules[grammar_->symbols[symbol].index].alternatives) {
    pending_.emplace_back(alternative, back);
  }
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
  rows_.back()->fill(state == kDead ? kDead : kUnknown);
  return state;
}

bool GrammarMatcher::may_end(State state) const {
  return !states_[state]->empty() &&
         states_[state]->back() == kEnded;  // the largest value, so it is last
}

bool GrammarMatcher::must_end(State state) const {
  return may_end(state) && states_[state]->size() == 1;
}

std::pair<GrammarMatcher::State, bool> GrammarMatcher::retain(State state) {
  if (state == kDead) return {kDead, false};  // keeps `overflowed`
  const bool has_space = states_.size() < kMaxStates / 2 && entries_.size() < kMaxEntries / 2;
  if (has_space && !overflowed_) return {state, false};
  const std::vector<Entry> entries = entries_;
  const Stacks stacks = *states_[state];
  reset();
  Stacks kept;
  for (const std::uint32_t stack : stacks) {
    std::vector<std::uint32_t> path;  // entries, from the top
    for (std::uint32_t at = stack; at != kBottom; at = entries[at].below) path.push_back(at);
    std::uint32_t below = kBottom;
    for (; !path.empty(); path.pop_back()) below = entry(entries[path.back()].symbol, below);
    kept.push_back(below);
  }
  return {state_of(std::move(kept)), true};
}

}  // namespace leasehold

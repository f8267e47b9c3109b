#include "worker/text/grammar/text_automaton.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

constexpr CodePoints kAnyCharacter{0, 0x10FFFF};
/// Limit on the rounds of `minimal`.
constexpr int kMaxRounds = 64;

using AutomatonState = TextAutomaton::State;

/// Adds an edge. Joins it with the last edge if that is adjacent and leads to the same state.
void add_edge(AutomatonState& state, CodePoints on, std::uint32_t to) {
  if (!state.edges.empty() && state.edges.back().to == to &&
      state.edges.back().on.high + 1 == on.low) {
    state.edges.back().on.high = on.high;
  } else {
    state.edges.push_back({on, to});
  }
}

/// Finds the nodes that empty edges lead to (the epsilon closure). A search costs time in
/// proportion to the nodes that it finds, not to the fragment.
class EmptyClosure {
 public:
  explicit EmptyClosure(const TextAutomaton::Fragment& fragment)
      : fragment_(fragment), seen_in_(fragment.nodes.size()) {}

  /// Returns these nodes and `from`, sorted.
  std::vector<std::uint32_t> of(std::vector<std::uint32_t> from) {
    ++search_;
    std::erase_if(from, [this](std::uint32_t node) { return !is_new(node); });
    for (std::size_t at = 0; at < from.size(); ++at)
      for (const std::uint32_t next : fragment_.nodes[from[at]].empty_edges)
        if (is_new(next)) from.push_back(next);
    std::ranges::sort(from);
    return from;
  }

 private:
  bool is_new(std::uint32_t node) { return std::exchange(seen_in_[node], search_) != search_; }

  const TextAutomaton::Fragment& fragment_;
  std::vector<std::uint32_t> seen_in_;  ///< Number of the last search that found the node.
  std::uint32_t search_ = 0;
};

struct Target {
  CodePoints on;
  std::uint32_t to;
};

/// Splits overlapping ranges: calls `emit` for each maximal range with the targets it leads to.
template <class Emit>
void split_ranges(const std::vector<Target>& targets, Emit emit) {
  std::vector<std::uint32_t> cuts;
  for (const Target& target : targets) {
    cuts.push_back(target.on.low);
    cuts.push_back(target.on.high + 1);
  }
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const CodePoints part{cuts[i], cuts[i + 1] - 1};
    std::vector<std::uint32_t> to;
    for (const Target& target : targets)
      if (target.on.low <= part.low && part.high <= target.on.high) to.push_back(target.to);
    if (!to.empty()) emit(part, std::move(to));
  }
}

}  // namespace

std::vector<bool> live_states(std::vector<bool> accepts,
                              const std::vector<std::vector<std::uint32_t>>& predecessors) {
  std::vector<std::uint32_t> todo;
  for (std::uint32_t i = 0; i < accepts.size(); ++i)
    if (accepts[i]) todo.push_back(i);
  std::vector<bool> live = std::move(accepts);
  while (!todo.empty()) {
    const std::uint32_t at = todo.back();
    todo.pop_back();
    for (const std::uint32_t predecessor : predecessors[at]) {
      if (live[predecessor]) continue;
      live[predecessor] = true;
      todo.push_back(predecessor);
    }
  }
  return live;
}

/// Keeps the start and the states that lead to an accepting one.
TextAutomaton::TextAutomaton(std::vector<State> states) {
  std::vector<bool> accepts(states.size());
  std::vector<std::vector<std::uint32_t>> predecessors(states.size());
  for (std::uint32_t i = 0; i < states.size(); ++i) {
    for (const Edge& edge : states[i].edges) predecessors[edge.to].push_back(i);
    accepts[i] = states[i].accepts;
  }
  const std::vector<bool> live = live_states(std::move(accepts), predecessors);
  std::vector<std::uint32_t> ids(states.size());
  std::uint32_t next = 1;
  for (std::uint32_t i = 1; i < states.size(); ++i)
    if (live[i]) ids[i] = next++;
  states_.resize(next);
  for (std::uint32_t i = 0; i < states.size(); ++i) {
    if (i > 0 && !live[i]) continue;
    State& kept = states_[ids[i]];
    kept.accepts = states[i].accepts;
    for (const Edge& edge : states[i].edges)
      if (live[edge.to]) add_edge(kept, edge.on, ids[edge.to]);
  }
}

TextAutomaton TextAutomaton::of_length(std::uint32_t min, std::optional<std::uint32_t> max) {
  const std::uint32_t last = std::max(min, max.value_or(min));
  std::vector<State> states(last + 1);
  for (std::uint32_t i = 0; i <= last; ++i) {
    states[i].accepts = i >= min && (!max || i <= *max);
    if (i < last) states[i].edges.push_back({kAnyCharacter, i + 1});
  }
  if (!max) states[last].edges.push_back({kAnyCharacter, last});
  return TextAutomaton(std::move(states));
}

TextAutomaton TextAutomaton::of_words(const std::vector<std::string>& words) {
  std::vector<std::map<std::uint32_t, std::uint32_t>> edges(1);
  std::vector<State> states(1);
  for (const std::string& word : words) {
    std::uint32_t at = 0;
    for (std::string_view rest = word; !rest.empty();) {
      const auto [edge, is_new] =
          edges[at].emplace(take_code_point(rest), static_cast<std::uint32_t>(edges.size()));
      at = edge->second;
      if (!is_new) continue;
      edges.emplace_back();
      states.emplace_back();
    }
    states[at].accepts = true;
  }
  for (std::size_t i = 0; i < edges.size(); ++i)
    for (const auto& [on, to] : edges[i]) states[i].edges.push_back({{on, on}, to});
  return TextAutomaton(std::move(states));
}

std::optional<TextAutomaton> TextAutomaton::deterministic(const Fragment& fragment,
                                                          WorkBudget& work) {
  std::map<std::vector<std::uint32_t>, std::uint32_t> ids;
  std::vector<const std::vector<std::uint32_t>*> sets;
  EmptyClosure closure(fragment);
  bool fits = true;
  const auto id_of = [&](std::vector<std::uint32_t> nodes) {
    nodes = closure.of(std::move(nodes));
    fits = fits && work.take(nodes.size() / 8);
    const auto [found, is_new] =
        ids.emplace(std::move(nodes), static_cast<std::uint32_t>(sets.size()));
    if (is_new) sets.push_back(&found->first);
    return found->second;
  };
  id_of({0});
  std::vector<State> states;
  while (states.size() < sets.size()) {
    const std::vector<std::uint32_t>& nodes = *sets[states.size()];
    std::vector<Target> targets;
    State state;
    for (const std::uint32_t node : nodes) {
      state.accepts = state.accepts || fragment.nodes[node].accepts;
      for (const auto& [characters, to] : fragment.nodes[node].edges)
        for (const CodePoints& range : characters) targets.push_back({range, to});
    }
    if (!work.take(1 + nodes.size() + targets.size() * (1 + targets.size() / 8)))
      return std::nullopt;
    split_ranges(targets, [&](CodePoints on, std::vector<std::uint32_t> to) {
      if (fits) add_edge(state, on, id_of(std::move(to)));
    });
    if (!fits) return std::nullopt;
    states.push_back(std::move(state));
  }
  return TextAutomaton(std::move(states));
}

std::optional<TextAutomaton> TextAutomaton::both(const TextAutomaton& a, const TextAutomaton& b,
                                                 WorkBudget& work) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> ids{{{0, 0}, 0}};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs{{0, 0}};
  std::vector<State> states;
  for (std::size_t at = 0; at < pairs.size(); ++at) {
    const State& left = a.states_[pairs[at].first];
    const State& right = b.states_[pairs[at].second];
    if (!work.take(1 + left.edges.size() + right.edges.size())) return std::nullopt;
    State state{.edges = {}, .accepts = left.accepts && right.accepts};
    for (auto l = left.edges.begin(), r = right.edges.begin();
         l != left.edges.end() && r != right.edges.end();) {
      const CodePoints on{std::max(l->on.low, r->on.low), std::min(l->on.high, r->on.high)};
      if (on.low <= on.high) {
        const auto [found, is_new] =
            ids.emplace(std::pair(l->to, r->to), static_cast<std::uint32_t>(pairs.size()));
        if (is_new) pairs.emplace_back(l->to, r->to);
        add_edge(state, on, found->second);
      }
      if (l->on.high < r->on.high) {
        ++l;
      } else {
        ++r;
      }
    }
    states.push_back(std::move(state));
  }
  return TextAutomaton(std::move(states));
}

std::optional<TextAutomaton> TextAutomaton::either(const TextAutomaton& a, const TextAutomaton& b,
                                                   WorkBudget& work) {
  const auto neither = both(a.complement(), b.complement(), work);
  if (!neither) return std::nullopt;
  return neither->complement();
}

TextAutomaton TextAutomaton::complement() const {
  std::vector<State> states = states_;
  const auto other = static_cast<std::uint32_t>(states.size());
  for (State& state : states) {
    state.accepts = !state.accepts;
    CharacterClass taken;
    for (const Edge& edge : state.edges) taken.push_back(edge.on);
    for (const CodePoints& range : complement_of(taken)) state.edges.push_back({range, other});
    std::ranges::sort(state.edges, {}, [](const Edge& edge) { return edge.on; });
  }
  states.push_back({.edges = {{kAnyCharacter, other}}, .accepts = true});
  return TextAutomaton(std::move(states));
}

/// Moore's partition: two states are distinct if only one accepts, or if a character leads to
/// distinct states. Classes are numbered by their first state, so the start is 0.
TextAutomaton TextAutomaton::minimal(WorkBudget& work) const {
  std::vector<std::uint32_t> classes(states_.size());
  for (std::size_t i = 0; i < states_.size(); ++i) classes[i] = states_[i].accepts ? 1 : 0;
  std::size_t n_edges = states_.size();
  for (const State& state : states_) n_edges += state.edges.size();
  for (int round = 0; round < kMaxRounds && work.take(1 + n_edges / 8); ++round) {
    std::map<std::pair<std::uint32_t, std::vector<std::pair<CodePoints, std::uint32_t>>>,
             std::uint32_t>
        ids;
    std::vector<State> kept;
    std::vector<std::uint32_t> next;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      State joined{.edges = {}, .accepts = states_[i].accepts};
      for (const Edge& edge : states_[i].edges) add_edge(joined, edge.on, classes[edge.to]);
      std::vector<std::pair<CodePoints, std::uint32_t>> edges;
      for (const Edge& edge : joined.edges) edges.emplace_back(edge.on, edge.to);
      const auto [id, is_new] = ids.emplace(std::pair(classes[i], std::move(edges)),
                                            static_cast<std::uint32_t>(kept.size()));
      if (is_new) kept.push_back(std::move(joined));
      next.push_back(id->second);
    }
    if (classes == next) return TextAutomaton(std::move(kept));
    classes = std::move(next);
  }
  return *this;
}

bool TextAutomaton::accepts(std::string_view text) const {
  std::uint32_t at = 0;
  while (!text.empty()) {
    const std::uint32_t c = take_code_point(text);
    const auto edge = std::ranges::find_if(
        states_[at].edges, [c](const Edge& e) { return e.on.low <= c && c <= e.on.high; });
    if (edge == states_[at].edges.end()) return false;
    at = edge->to;
  }
  return states_[at].accepts;
}

}  // namespace leasehold

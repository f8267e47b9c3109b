#include "worker/text/grammar/text_growth.hpp"

#include <algorithm>

namespace leasehold {
namespace {

using AutomatonStates = std::vector<TextAutomaton::State>;
using States = std::vector<std::uint32_t>;
using Component = States;

/// Finds the strongly connected components, each after those it leads to. The stack is explicit,
/// because automata are deep.
class ComponentSearch {
 public:
  explicit ComponentSearch(const AutomatonStates& states)
      : states_(states), order_(states.size()), low_(states.size()), is_done_(states.size()) {}

  std::vector<Component> find() {
    open(0);
    while (!visits_.empty()) {
      auto& [state, edge] = visits_.back();
      if (edge < states_[state].edges.size()) {
        const std::uint32_t to = states_[state].edges[edge++].to;
        if (order_[to] == 0) {
          open(to);
        } else if (!is_done_[to]) {
          low_[state] = std::min(low_[state], order_[to]);
        }
        continue;
      }
      const std::uint32_t closed = state;
      visits_.pop_back();
      if (!visits_.empty())
        low_[visits_.back().state] = std::min(low_[visits_.back().state], low_[closed]);
      if (low_[closed] == order_[closed]) take_component(closed);
    }
    return std::move(components_);
  }

 private:
  struct Visit {
    std::uint32_t state;
    std::size_t edge;
  };

  void open(std::uint32_t state) {
    order_[state] = low_[state] = ++n_seen_;
    waiting_.push_back(state);
    visits_.push_back({state, 0});
  }
  void take_component(std::uint32_t first) {
    const auto begin = std::ranges::find(waiting_, first);
    components_.emplace_back(begin, waiting_.end());
    waiting_.erase(begin, waiting_.end());
    for (const std::uint32_t state : components_.back()) is_done_[state] = true;
  }

  const AutomatonStates& states_;
  std::vector<std::uint32_t> order_;  ///< 0: not seen.
  std::vector<std::uint32_t> low_;
  std::vector<bool> is_done_;
  std::uint32_t n_seen_ = 0;
  std::vector<Visit> visits_;
  std::vector<std::uint32_t> waiting_;  ///< Seen, but not in a component yet.
  std::vector<Component> components_;
};

std::uint64_t one_more(std::uint64_t n) {
  return n == TextGrowth::kAny ? n : n + 1;
}

}  // namespace

TextGrowth::TextGrowth(const TextAutomaton& set) : states(set.states().size()) {
  const std::vector<Component> components = ComponentSearch(set.states()).find();
  for (std::uint32_t id = 0; id < components.size(); ++id)
    for (const std::uint32_t state : components[id]) states[state].part = id;
  for (const Component& component : components) {
    const auto id = static_cast<std::uint32_t>(parts.size());
    Part part{.n_states = static_cast<std::uint32_t>(component.size())};
    for (const std::uint32_t state : component) {
      for (const auto& edge : set.states()[state].edges) {
        const State& to = states[edge.to];
        part.grows = part.grows || to.part == id;
        if (to.part == id) continue;
        part.longest_rest = std::max(part.longest_rest, one_more(to.longest));
        part.max_growing_parts = std::max(part.max_growing_parts, parts[to.part].max_growing_parts);
      }
    }
    part.max_growing_parts += part.grows ? 1 : 0;
    for (const std::uint32_t state : component)
      states[state].longest = part.grows ? kAny : part.longest_rest;
    parts.push_back(part);
  }
  // Search breadth-first from the accepting states.
  std::vector<States> predecessors(states.size());
  States todo;
  for (std::uint32_t i = 0; i < states.size(); ++i) {
    for (const auto& edge : set.states()[i].edges) predecessors[edge.to].push_back(i);
    if (!set.states()[i].accepts) continue;
    states[i].shortest = 0;
    todo.push_back(i);
  }
  for (std::size_t at = 0; at < todo.size(); ++at) {
    for (const std::uint32_t predecessor : predecessors[todo[at]]) {
      if (states[predecessor].shortest != kAny) continue;
      states[predecessor].shortest = states[todo[at]].shortest + 1;
      todo.push_back(predecessor);
    }
  }
}

}  // namespace leasehold

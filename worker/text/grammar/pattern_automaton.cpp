#include "worker/text/grammar/schema/schema_pattern.hpp"

namespace leasehold {
namespace {

/// Thompson's construction: a nondeterministic automaton of a pattern.
struct FragmentBuilder {
  using Node = std::uint32_t;
  explicit FragmentBuilder(WorkBudget& budget) : work(budget) {}

  bool build(const Pattern& pattern) {
    const Node end = add(pattern, node());
    fragment.nodes[end].accepts = true;
    return fits;
  }

  Node node() {
    fits = fits && work.take(1);
    fragment.nodes.emplace_back();
    return static_cast<Node>(fragment.nodes.size() - 1);
  }
  void link(Node from, Node to) { fragment.nodes[from].empty_edges.push_back(to); }

  /// Adds the pattern after `from`, and returns the node after the pattern.
  Node add(const Pattern& pattern, Node from) {
    if (!fits) return from;
    switch (pattern.kind) {
      case Pattern::Kind::Character: {
        const Node to = node();
        fits = fits && work.take(pattern.characters.size());
        if (fits) fragment.nodes[from].edges.emplace_back(pattern.characters, to);
        return to;
      }
      case Pattern::Kind::Sequence:
        for (const Pattern& part : pattern.parts) from = add(part, from);
        return from;
      case Pattern::Kind::Choice: {
        const Node to = node();
        for (const Pattern& part : pattern.parts) {
          const Node begin = node();
          link(from, begin);
          link(add(part, begin), to);
        }
        return to;
      }
      case Pattern::Kind::Repeat:
        return add_repeat(pattern, from);
      case Pattern::Kind::Front:
      case Pattern::Kind::Back:
        break;
    }
    return from;
  }

  Node add_repeat(const Pattern& pattern, Node from) {
    const auto [min, max] = pattern.times;
    for (std::uint32_t i = 0; i < min && fits; ++i) from = add(pattern.parts[0], from);
    const Node end = node();
    if (!max) {
      const Node loop = node();
      link(from, loop);
      link(add(pattern.parts[0], loop), loop);
      link(loop, end);
      return end;
    }
    for (std::uint32_t i = min; i < *max && fits; ++i) {
      link(from, end);
      from = add(pattern.parts[0], from);
    }
    link(from, end);
    return end;
  }

  WorkBudget& work;
  TextAutomaton::Fragment fragment;
  bool fits = true;
};

}  // namespace

std::optional<TextAutomaton> automaton_of(const Pattern& pattern, WorkBudget& work) {
  FragmentBuilder builder(work);
  return builder.build(pattern) ? TextAutomaton::deterministic(builder.fragment, work)
                                : std::nullopt;
}

}  // namespace leasehold

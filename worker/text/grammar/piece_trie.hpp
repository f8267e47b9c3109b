/// All pieces of a vocabulary as one tree of bytes, so that common prefixes are checked once.
///
/// Nodes are stored in depth-first order, each with the index after its subtree, so a walk is one
/// pass over an array that skips dead subtrees.
///
/// Size: 12 bytes per node. Lifetime: independent of the vocabulary. Threads: immutable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/text/grammar/work_budget.hpp"
#include "worker/text/sampling/token_mask.hpp"

namespace leasehold {

class PieceTrie {
 public:
  /// `pieces` is indexed by token. Empty pieces (control tokens) and those over kMaxPieceBytes are
  /// left out.
  explicit PieceTrie(std::span<const std::string_view> pieces);
  static constexpr std::size_t kMaxPieceBytes = 1024;

  std::size_t n_vocab() const { return n_vocab_; }
  std::size_t node_count() const { return nodes_.size() - 1; }

  /// A pass over the tree that can pause.
  template <class State>
  struct Walk {
    std::vector<State> path;  ///< States on the way to the node.
    std::size_t node = 0;
  };
  template <class State>
  Walk<State> walk_from(State start) const {
    return {.path = std::vector<State>(max_depth_ + 1u, start)};
  }

  /// Adds to `found` every token whose bytes lead from the walk's start to a state of the matcher
  /// that is not dead. A node costs one unit. Returns false when the budget is used up; the same
  /// call continues the walk.
  template <class Matcher, class State>
  bool advance(Walk<State>& walk, Matcher& matcher, TokenMask& found, WorkBudget& budget) const {
    const std::size_t end = node_count();
    std::size_t i = walk.node;
    std::size_t nodes = 0;  // not charged yet; most nodes use no other part of the budget
    for (std::size_t left = budget.left; i < end && nodes < left;) {
      const Node& node = nodes_[i];
      State state = matcher.known(walk.path[node.depth - 1u], node.byte);
      if (state == Matcher::kUnfinished) {
        budget.spend(std::exchange(nodes, 0));
        state = matcher.next(walk.path[node.depth - 1u], node.byte, budget);
        if (state == Matcher::kUnfinished) break;
        left = budget.left;  // This node is visited even if that is 0.
      }
      ++nodes;
      if (state == Matcher::kDead) {
        i = node.skip;
        continue;
      }
      walk.path[node.depth] = state;
      ++i;
      for (std::uint32_t t = node.first_token; t < nodes_[i].first_token; ++t)
        found.add(tokens_[t]);
    }
    budget.spend(nodes);
    walk.node = i;
    return i >= end;
  }

 private:
  struct Node {
    std::uint32_t skip;         ///< Index of the first node after this subtree.
    std::uint32_t first_token;  ///< In tokens_, up to the next node's first token.
    std::uint16_t depth;        ///< 1 for a first byte.
    std::uint8_t byte;
  };

  void add(std::string_view piece, std::uint32_t token);
  void close(std::size_t depth);

  std::size_t n_vocab_;
  std::vector<TokenId> tokens_;  ///< In node order.
  std::vector<Node> nodes_;      ///< Plus a sentinel at the end.
  std::vector<std::uint32_t> open_;
  std::uint16_t max_depth_ = 0;
};

}  // namespace leasehold

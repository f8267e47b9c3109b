/// All pieces of a vocabulary as one tree of bytes, so that common prefixes are checked once.
///
/// Nodes are stored in depth-first order, each with the index after its subtree, so a walk is one
/// pass over an array that skips dead subtrees.
///
/// Size: 12 bytes per node. Lifetime: independent of the vocabulary. Threads: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "worker/text/sampling/token_mask.hpp"

namespace leasehold {

class PieceTrie {
 public:
  /// Indexed by token. Empty pieces (control tokens) and those over kMaxPieceBytes are left out.
  explicit PieceTrie(std::span<const std::string_view> pieces);
  static constexpr std::size_t kMaxPieceBytes = 1024;

  std::size_t n_vocab() const { return n_vocab_; }
  std::size_t node_count() const { return nodes_.size() - 1; }

  /// Adds to `found` every token whose bytes lead from `start` to a state other than `dead`.
  /// Signature of `next`: `State next(State, std::uint8_t byte)`.
  template <class State, class Next>
  void walk(State start, State dead, Next next, TokenMask& found) const {
    std::vector<State> path(max_depth_ + 1u, start);
    const std::size_t end = node_count();
    for (std::size_t i = 0; i < end;) {
      const Node& node = nodes_[i];
      const State state = next(path[node.depth - 1u], node.byte);
      if (state == dead) {
        i = node.skip;
        continue;
      }
      path[node.depth] = state;
      ++i;
      for (std::uint32_t t = node.first_token; t < nodes_[i].first_token; ++t)
        found.add(tokens_[t]);
    }
  }

 private:
  struct Node {
    std::uint32_t skip;         ///< Index of the first node after this subtree.
    std::uint32_t first_token;  ///< Its tokens end where those of the next node begin.
    std::uint16_t depth;        ///< From 1.
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

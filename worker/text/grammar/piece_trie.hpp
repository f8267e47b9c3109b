/// All pieces of a vocabulary as one tree of bytes, so that whoever asks about each of them asks
/// about a common beginning once.
///
/// Nodes lie in the order in which a walk meets them, each with the place where the walk goes on
/// when nothing below it is of interest: the walk is one pass over an array.
///
/// Lifetime: independent of the vocabulary it was made from; 12 bytes per node, made once per
/// model. Threads: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "worker/text/sampling/token_mask.hpp"

namespace leasehold {

class PieceTrie {
 public:
  /// pieces[token]; empty ones (control tokens) and those over kMaxPieceBytes are left out.
  explicit PieceTrie(std::span<const std::string_view> pieces);
  static constexpr std::size_t kMaxPieceBytes = 1024;

  std::size_t n_vocab() const { return n_vocab_; }
  std::size_t node_count() const { return nodes_.size() - 1; }

  /// Adds to `found` every token whose bytes lead from `start` through `next` to something other
  /// than `dead`. `State next(State, std::uint8_t byte)`.
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
    std::uint32_t skip;         ///< The first node that is not below this one.
    std::uint32_t first_token;  ///< Its tokens end where those of the next node begin.
    std::uint16_t depth;        ///< From 1.
    std::uint8_t byte;
  };

  void add(std::string_view piece, std::uint32_t token);
  void close(std::size_t depth);

  std::size_t n_vocab_;
  std::vector<TokenId> tokens_;  ///< In the order of the walk.
  std::vector<Node> nodes_;      ///< And one more, to end the last.
  std::vector<std::uint32_t> open_;
  std::uint16_t max_depth_ = 0;
};

}  // namespace leasehold

#include "worker/text/grammar/piece_trie.hpp"

#include <algorithm>

namespace leasehold {

PieceTrie::PieceTrie(std::span<const std::string_view> pieces) : n_vocab_(pieces.size()) {
  for (std::size_t token = 0; token < pieces.size(); ++token) {
    if (pieces[token].empty() || pieces[token].size() > kMaxPieceBytes) continue;
    tokens_.push_back(static_cast<TokenId>(token));
  }
  const auto piece_of = [&](TokenId token) { return pieces[static_cast<std::size_t>(token)]; };
  std::ranges::stable_sort(tokens_, {}, piece_of);
  std::string_view before;
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view piece = piece_of(tokens_[i]);
    const auto shared =
        static_cast<std::size_t>(std::ranges::mismatch(before, piece).in1 - before.begin());
    before = piece;
    close(shared);
    add(piece, i);
  }
  close(0);
  const auto end = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({end, static_cast<std::uint32_t>(tokens_.size()), 0, 0});
}

/// Adds nodes for the bytes of `piece` behind those that are open. `token` is the index of the
/// piece in tokens_, the first one in the subtree of each new node.
void PieceTrie::add(std::string_view piece, std::uint32_t token) {
  while (open_.size() < piece.size()) {
    const std::size_t depth = open_.size() + 1;
    open_.push_back(static_cast<std::uint32_t>(nodes_.size()));
    nodes_.push_back(
        {0, token, static_cast<std::uint16_t>(depth), static_cast<std::uint8_t>(piece[depth - 1])});
    max_depth_ = std::max(max_depth_, static_cast<std::uint16_t>(depth));
  }
}

/// Closes the subtrees of nodes deeper than `depth`.
void PieceTrie::close(std::size_t depth) {
  for (; open_.size() > depth; open_.pop_back())
    nodes_[open_.back()].skip = static_cast<std::uint32_t>(nodes_.size());
}

}  // namespace leasehold

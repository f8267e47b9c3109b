/// Finds tokens that stand in a text as they are: `<|im_end|>` and the like.
///
/// The leftmost place counts, and there the longest token. A trie over their texts: a search costs
/// at most the text's length times that of the longest token, however many tokens there are.
/// Threads: any number may search.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

class SpecialTokenFinder {
 public:
  struct Match {
    std::size_t start;
    std::size_t size_bytes;
    TokenId token;
  };

  /// `text` is not empty. Of two tokens with one text the first one counts.
  void add(std::string_view text, TokenId token);

  /// The first one in `text`.
  std::optional<Match> next(std::string_view text) const;

 private:
  using Node = std::uint32_t;
  static constexpr Node kNoNode = 0;
  static constexpr TokenId kNoToken = -1;

  std::optional<Match> longest_match_at(std::string_view text, std::size_t start) const;
  Node step(Node from, char byte) const;

  std::array<Node, 256> first_{};  ///< By the first byte; most bytes begin no token.
  boost::unordered_flat_map<std::uint64_t, Node> edges_;
  std::vector<TokenId> tokens_{kNoToken};  ///< By node: the token that ends there.
};

}  // namespace leasehold

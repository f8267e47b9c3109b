/// Finds tokens that occur in a text by name, such as `<|im_end|>`.
///
/// The leftmost match wins; at one position, the longest token. The name of a control token matches
/// only where the template wrote all of it, and that of another token everywhere. The texts form a
/// trie, so a search costs at most the length of the text times that of the longest token.
/// Threads: any number at a time.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "worker/text/marked_text.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

class SpecialTokenFinder {
 public:
  struct Match {
    std::size_t start;
    std::size_t size_bytes;
    TokenId token;
  };

  enum class Found : std::uint8_t { Everywhere, InTemplateText };

  /// `text` is not empty. Of two tokens with the same text the first one is kept.
  void add(std::string_view text, TokenId token, Found where = Found::Everywhere);

  /// Returns the first match from the byte `from` on. `from_template` is that of a MarkedText.
  std::optional<Match> next(std::string_view text, std::size_t from = 0,
                            std::span<const MarkedText::Range> from_template = {}) const;

 private:
  using Node = std::uint32_t;
  static constexpr Node kNoNode = 0;
  static constexpr TokenId kNoToken = -1;

  struct NamedToken {
    TokenId token = kNoToken;
    Found where = Found::Everywhere;
  };

  /// The template wrote the bytes from `start` up to `template_end`, but not the byte after them.
  std::optional<Match> longest_match_at(std::string_view text, std::size_t start,
                                        std::size_t template_end) const;
  Node step(Node from, char byte) const;

  std::array<Node, 256> first_{};  ///< By first byte; most bytes do not begin a token.
  boost::unordered_flat_map<std::uint64_t, Node> edges_;
  std::vector<NamedToken> tokens_{NamedToken{}};  ///< By node: the token that ends at the node.
};

}  // namespace leasehold

#include "worker/text/tokenizer/special_token_finder.hpp"

namespace leasehold {
namespace {

constexpr std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<std::uint8_t>(byte);
}

}  // namespace

void SpecialTokenFinder::add(std::string_view text, TokenId token) {
  Node node = kNoNode;
  for (std::size_t i = 0; i < text.size(); ++i) {
    Node& child = i == 0 ? first_[static_cast<std::uint8_t>(text[0])] : edges_[edge(node, text[i])];
    if (child == kNoNode) {
      child = static_cast<Node>(tokens_.size());
      tokens_.push_back(kNoToken);
    }
    node = child;
  }
  if (tokens_[node] == kNoToken) tokens_[node] = token;
}

SpecialTokenFinder::Node SpecialTokenFinder::step(Node from, char byte) const {
  const auto found = edges_.find(edge(from, byte));
  return found == edges_.end() ? kNoNode : found->second;
}

std::optional<SpecialTokenFinder::Match> SpecialTokenFinder::longest_match_at(
    std::string_view text, std::size_t start) const {
  std::optional<Match> longest;
  Node node = first_[static_cast<std::uint8_t>(text[start])];
  for (std::size_t end = start + 1; node != kNoNode; ++end) {
    if (tokens_[node] != kNoToken) longest = Match{start, end - start, tokens_[node]};
    if (end == text.size()) break;
    node = step(node, text[end]);
  }
  return longest;
}

std::optional<SpecialTokenFinder::Match> SpecialTokenFinder::next(std::string_view text) const {
  for (std::size_t start = 0; start < text.size(); ++start)
    if (const auto found = longest_match_at(text, start)) return found;
  return std::nullopt;
}

}  // namespace leasehold

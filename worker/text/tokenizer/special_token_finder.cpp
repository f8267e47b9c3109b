#include "worker/text/tokenizer/special_token_finder.hpp"

#include <algorithm>

namespace leasehold {
namespace {

constexpr std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<std::uint8_t>(byte);
}

}  // namespace

void SpecialTokenFinder::add(std::string_view text, TokenId token, Found where) {
  Node node = kNoNode;
  for (std::size_t i = 0; i < text.size(); ++i) {
    Node& child = i == 0 ? first_[static_cast<std::uint8_t>(text[0])] : edges_[edge(node, text[i])];
    if (child == kNoNode) {
      child = static_cast<Node>(tokens_.size());
      tokens_.emplace_back();
    }
    node = child;
  }
  if (tokens_[node].token == kNoToken) tokens_[node] = {token, where};
}

SpecialTokenFinder::Node SpecialTokenFinder::step(Node from, char byte) const {
  const auto found = edges_.find(edge(from, byte));
  return found == edges_.end() ? kNoNode : found->second;
}

std::optional<SpecialTokenFinder::Match> SpecialTokenFinder::longest_match_at(
    std::string_view text, std::size_t start, std::size_t template_end) const {
  std::optional<Match> longest;
  Node node = first_[static_cast<std::uint8_t>(text[start])];
  for (std::size_t end = start + 1; node != kNoNode; ++end) {
    const auto [token, where] = tokens_[node];
    const bool may_match = where == Found::Everywhere || end <= template_end;
    if (token != kNoToken && may_match) longest = Match{start, end - start, token};
    if (end == text.size()) break;
    node = step(node, text[end]);
  }
  return longest;
}

std::optional<SpecialTokenFinder::Match> SpecialTokenFinder::next(
    std::string_view text, std::size_t from,
    std::span<const MarkedText::Range> from_template) const {
  auto range = std::ranges::upper_bound(from_template, from, {}, &MarkedText::Range::end);
  for (std::size_t start = from; start < text.size(); ++start) {
    if (range != from_template.end() && range->end == start) ++range;
    const bool is_template = range != from_template.end() && range->begin <= start;
    const auto found = longest_match_at(text, start, is_template ? range->end : start);
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace leasehold

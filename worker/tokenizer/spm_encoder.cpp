// Tokenizer::encode: the merging of symbols by score, over a doubly linked list of slices of the
// text and a queue of the pairs that could merge. Each merge adds at most two pairs, so a text of
// n characters costs O(n log n).
#include <fmt/format.h>

#include <queue>
#include <tuple>

#include "common/utf8.hpp"
#include "worker/tokenizer/tokenizer.hpp"

namespace leasehold {

class SpmEncoder {
 public:
  /// `text` is normalized: spaces are marks already.
  SpmEncoder(const Tokenizer& vocabulary, std::string_view text)
      : vocabulary_(vocabulary), text_(text) {}

  void append_tokens_to(std::vector<TokenId>& tokens) {
    split();
    for (Index i = 1; i < std::ssize(symbols_); ++i) consider(i - 1, i);
    merge();
    if (symbols_.empty()) return;
    for (Index i = 0; i != kNone; i = symbols_[i].next) append(symbols_[i], tokens);
  }

 private:
  using Index = std::int32_t;
  static constexpr Index kNone = -1;
  static constexpr TokenId kNoToken = -1;

  struct Symbol {
    std::uint32_t start;
    std::uint32_t size_bytes;  ///< 0 once it was merged into its left neighbour.
    Index previous;
    Index next;
    TokenId user_defined;  ///< Such a token stands as it is and merges with nothing.
  };

  /// Two neighbours whose union is a token. Stale once either has merged otherwise, which shows in
  /// their sizes.
  struct Pair {
    float score;
    Index left;
    Index right;
    std::uint32_t size_bytes;

    bool operator<(const Pair& other) const {
      return std::tuple(score, other.left) < std::tuple(other.score, left);
    }
  };

  std::string_view slice(const Symbol& symbol) const {
    return text_.substr(symbol.start, symbol.size_bytes);
  }

  /// The longest user-defined token the text begins with.
  TokenId user_defined_at(std::string_view text) const {
    for (const TokenId token : vocabulary_.user_defined_)
      if (text.starts_with(vocabulary_.texts_[token])) return token;
    return kNoToken;
  }

  /// One symbol for each character, run of bytes that are none, or user-defined token.
  void split() {
    for (std::size_t at = 0; at < text_.size();) {
      const std::string_view rest = text_.substr(at);
      const TokenId token = user_defined_at(rest);
      const std::size_t size =
          token == kNoToken ? next_utf8(rest).size_bytes : vocabulary_.texts_[token].size();
      const auto index = static_cast<Index>(symbols_.size());
      symbols_.push_back({.start = static_cast<std::uint32_t>(at),
                          .size_bytes = static_cast<std::uint32_t>(size),
                          .previous = index - 1,
                          .next = index + 1,
                          .user_defined = token});
      at += size;
    }
    if (!symbols_.empty()) symbols_.back().next = kNone;
  }

  void consider(Index left, Index right) {
    if (left == kNone || right == kNone) return;
    const Symbol& a = symbols_[left];
    const Symbol& b = symbols_[right];
    if (a.user_defined != kNoToken || b.user_defined != kNoToken) return;
    const std::uint32_t size = a.size_bytes + b.size_bytes;
    const auto found = vocabulary_.by_text_.find(text_.substr(a.start, size));
    if (found == vocabulary_.by_text_.end()) return;
    pairs_.push({vocabulary_.scores_[found->second], left, right, size});
  }

  void merge() {
    while (!pairs_.empty()) {
      const Pair pair = pairs_.top();
      pairs_.pop();
      Symbol& left = symbols_[pair.left];
      Symbol& right = symbols_[pair.right];
      if (left.size_bytes == 0 || right.size_bytes == 0 ||
          left.size_bytes + right.size_bytes != pair.size_bytes)
        continue;
      left.size_bytes = pair.size_bytes;
      right.size_bytes = 0;
      left.next = right.next;
      if (right.next != kNone) symbols_[right.next].previous = pair.left;
      consider(left.previous, pair.left);
      consider(pair.left, left.next);
    }
  }

  void append(const Symbol& symbol, std::vector<TokenId>& tokens) const {
    if (symbol.user_defined != kNoToken) return tokens.push_back(symbol.user_defined);
    const auto found = vocabulary_.by_text_.find(slice(symbol));
    if (found != vocabulary_.by_text_.end()) return tokens.push_back(found->second);
    const std::size_t before = tokens.size();
    for (const char c : slice(symbol)) {
      const auto byte = vocabulary_.by_byte_[static_cast<std::uint8_t>(c)];
      if (!byte) {
        tokens.resize(before);
        return tokens.push_back(vocabulary_.unknown_);
      }
      tokens.push_back(*byte);
    }
  }

  const Tokenizer& vocabulary_;
  std::string_view text_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Pair> pairs_;
};

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text) const {
  if (text.size() > kMaxTextBytes)
    return fail(Errc::PromptTooLong, fmt::format("the text has {} bytes; {} can be encoded",
                                                 text.size(), kMaxTextBytes));
  std::vector<TokenId> tokens;
  if (adds_bos_) tokens.push_back(*bos_);
  if (text.empty()) return tokens;
  std::string normalized(adds_space_prefix_ ? kSpaceMark : "");
  normalized += replaced(text, " ", kSpaceMark);
  SpmEncoder(*this, normalized).append_tokens_to(tokens);
  return tokens;
}

}  // namespace leasehold

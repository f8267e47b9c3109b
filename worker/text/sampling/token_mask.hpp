/// A set of tokens, one bit per token.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/text/sampling/params.hpp"

namespace leasehold {

class TokenMask {
 public:
  TokenMask() = default;
  explicit TokenMask(std::size_t n_vocab) : size_(n_vocab), words_((n_vocab + 63) / 64) {}

  /// All tokens of the vocabulary.
  static TokenMask all(std::size_t n_vocab) {
    TokenMask mask(n_vocab);
    for (std::uint64_t& word : mask.words_) word = ~std::uint64_t{0};
    if (n_vocab % 64 != 0) mask.words_.back() = (std::uint64_t{1} << n_vocab % 64) - 1;
    mask.count_ = n_vocab;
    return mask;
  }

  /// The size of the vocabulary.
  std::size_t size() const { return size_; }

  void clear() {
    words_.assign(words_.size(), 0);
    count_ = 0;
  }
  void add(TokenId token) {
    count_ += contains(token) ? 0 : 1;
    words_[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << token % 64;
  }
  void remove(TokenId token) {
    count_ -= contains(token) ? 1 : 0;
    words_[static_cast<std::size_t>(token) / 64] &= ~(std::uint64_t{1} << token % 64);
  }
  bool contains(TokenId token) const {
    return (word(static_cast<std::size_t>(token) / 64) >> token % 64 & 1) != 0;
  }
  /// Tokens 64·i to 64·i + 63, lowest bit first. Bits beyond the vocabulary are 0.
  std::uint64_t word(std::size_t i) const { return i < words_.size() ? words_[i] : 0; }
  bool empty() const { return count_ == 0; }
  /// The number of tokens in the set.
  std::size_t count() const { return count_; }
  bool operator==(const TokenMask&) const = default;

  /// Calls `visit(token)` in ascending order until it returns false.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) {
        if (!visit(static_cast<TokenId>(i * 64 + std::countr_zero(rest)))) return;
      }
    }
  }

 private:
  std::size_t size_ = 0;
  std::size_t count_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace leasehold

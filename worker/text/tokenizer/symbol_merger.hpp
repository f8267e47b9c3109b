/// The merge loop of both kinds of BPE. It joins the best pair of neighbouring symbols, at ties the
/// leftmost one, until no pair can be joined.
///
/// It uses a doubly linked list of slices and a heap of candidate pairs. Each merge adds at most
/// two pairs, so n symbols cost O(n log n). `clear` keeps the memory for reuse. Threads: one.
#pragma once

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

class SymbolMerger {
 public:
  static constexpr TokenId kNoToken = -1;

  struct Symbol {
    std::uint32_t start;
    std::uint32_t size_bytes;  ///< 0 after it merged into its left neighbour.
    std::int32_t previous;
    std::int32_t next;
    TokenId token;  ///< kNoToken if the vocabulary has no token for this slice.
  };

  /// The union of two neighbours. The greatest score merges first.
  struct Merge {
    float score;
    TokenId token;
  };

  void clear() {
    symbols_.clear();
    pairs_.clear();
  }

  /// Appends the next slice of the text; `size_bytes` > 0.
  void add(std::uint32_t size_bytes, TokenId token) {
    const auto index = static_cast<std::int32_t>(symbols_.size());
    if (index > 0) symbols_.back().next = index;
    const std::uint32_t start = index > 0 ? symbols_.back().start + symbols_.back().size_bytes : 0;
    symbols_.push_back({start, size_bytes, index - 1, kNone, token});
  }

  /// `find_merge(left, right)` returns an optional Merge.
  template <class FindMerge>
  void merge(FindMerge find_merge) {
    for (std::int32_t i = 1; i < std::ssize(symbols_); ++i) push_pair(i - 1, i, find_merge);
    while (!pairs_.empty()) {
      const Pair pair = pairs_.front();
      std::ranges::pop_heap(pairs_, Pair::lower_priority);
      pairs_.pop_back();
      if (is_stale(pair)) continue;
      apply_merge(pair);
      push_pair(symbols_[pair.left].previous, pair.left, find_merge);
      push_pair(pair.left, symbols_[pair.left].next, find_merge);
    }
  }

  /// Visits the remaining symbols in text order.
  template <class Visit>
  void for_each(Visit visit) const {
    if (symbols_.empty()) return;
    for (std::int32_t i = 0; i != kNone; i = symbols_[i].next) visit(symbols_[i]);
  }

 private:
  static constexpr std::int32_t kNone = -1;

  struct Pair {
    float score;
    std::int32_t left;
    std::int32_t right;
    std::uint32_t size_bytes;  ///< Size of both symbols together.
    TokenId token;

    static bool lower_priority(const Pair& a, const Pair& b) {
      return std::tuple(a.score, b.left) < std::tuple(b.score, a.left);
    }
  };

  template <class FindMerge>
  void push_pair(std::int32_t left, std::int32_t right, FindMerge& find_merge) {
    if (left == kNone || right == kNone) return;
    const Symbol& a = symbols_[left];
    const Symbol& b = symbols_[right];
    const std::optional<Merge> whole = find_merge(a, b);
    if (!whole) return;
    pairs_.push_back({whole->score, left, right, a.size_bytes + b.size_bytes, whole->token});
    std::ranges::push_heap(pairs_, Pair::lower_priority);
  }

  /// Symbols only grow or vanish, so their sizes show whether one of them merged with another.
  bool is_stale(const Pair& pair) const {
    const Symbol& left = symbols_[pair.left];
    const Symbol& right = symbols_[pair.right];
    return left.size_bytes == 0 || right.size_bytes == 0 ||
           left.size_bytes + right.size_bytes != pair.size_bytes;
  }

  void apply_merge(const Pair& pair) {
    Symbol& left = symbols_[pair.left];
    Symbol& right = symbols_[pair.right];
    left.size_bytes = pair.size_bytes;
    left.token = pair.token;
    right.size_bytes = 0;
    left.next = right.next;
    if (right.next != kNone) symbols_[right.next].previous = pair.left;
  }

  std::vector<Symbol> symbols_;
  std::vector<Pair> pairs_;  ///< A heap with the best pair in front.
};

}  // namespace leasehold

/// A context-free grammar over bytes, ready to be matched.
///
/// A *rule* is a list of alternatives, an *alternative* a run of symbols in one flat array, closed
/// by an End. A symbol is a set of bytes (one of which comes next) or a rule. Characters beyond
/// ASCII are spelled out as UTF-8 when the grammar is built, so matching knows nothing of them and
/// a character may be spread over any number of tokens. Repetitions have become rules that call
/// themselves in the last place, which costs a matcher no stack.
///
/// What GrammarBuilder::finish promises: every rule can be completed by some text, and no rule
/// comes back to itself without consuming a byte but in the last place of an alternative. So a
/// matcher terminates, and whatever it let through can be finished.
///
/// Lifetime: a value. Threads: immutable once built.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leasehold {

class ByteSet {
 public:
  void add(std::uint8_t byte) { words_[byte / 64] |= std::uint64_t{1} << byte % 64; }
  void add(std::uint8_t low, std::uint8_t high) {
    for (int byte = low; byte <= high; ++byte) add(static_cast<std::uint8_t>(byte));
  }
  bool contains(std::uint8_t byte) const { return (words_[byte / 64] >> byte % 64 & 1) != 0; }
  bool empty() const { return words_ == decltype(words_){}; }
  auto operator<=>(const ByteSet&) const = default;

 private:
  std::array<std::uint64_t, 4> words_{};
};

struct GrammarSymbol {
  enum class Kind : std::uint8_t { End, Bytes, Rule };
  Kind kind = Kind::End;
  std::uint32_t index = 0;  ///< Into `byte_sets` or `rules`.
  bool operator==(const GrammarSymbol&) const = default;
};

struct GrammarRule {
  std::string name;                         ///< As the author calls it, or what it stands for.
  std::vector<std::uint32_t> alternatives;  ///< Where each begins in `symbols`.
};

struct Grammar {
  std::vector<ByteSet> byte_sets;
  std::vector<GrammarSymbol> symbols;
  std::vector<GrammarRule> rules;
  std::uint32_t root = 0;
};

}  // namespace leasehold

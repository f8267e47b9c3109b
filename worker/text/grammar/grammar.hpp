/// A context-free grammar over bytes, ready to be matched.
///
/// A *rule* is a list of alternatives. An *alternative* is a run of symbols in one flat array,
/// ended by an End. A symbol is a set of bytes or a rule. The builder turns characters beyond ASCII
/// into UTF-8, so a character may span any number of tokens. Repetitions are rules that call
/// themselves as the last symbol, which costs the matcher no stack.
///
/// The builder guarantees: some text completes each rule that the root reaches, and a rule that
/// calls itself without consuming a byte does so as the last symbol only. So a matcher terminates,
/// and every accepted prefix can be completed.
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
  auto operator<=>(const GrammarSymbol&) const = default;
};

struct GrammarRule {
  std::string name;  ///< The name in the source, or that of the construct that made the rule.
  std::vector<std::uint32_t> alternatives;  ///< The index of the first symbol of each alternative.
};

/// The demands of the source that the grammar does not check, each with its path:
/// "#/properties/mail: 'format' \"idn\"". Bounded and printable, because clients read it.
struct UncheckedParts {
  static constexpr std::size_t kMaxListed = 32;
  std::vector<std::string> listed;  ///< Each has at most 256 bytes on one line.
  std::uint32_t omitted = 0;        ///< Number of demands that are not listed.
  bool operator==(const UncheckedParts&) const = default;
};

struct Grammar {
  std::vector<ByteSet> byte_sets;
  std::vector<GrammarSymbol> symbols;
  std::vector<GrammarRule> rules;
  std::uint32_t root = 0;
  UncheckedParts unchecked = {};
};

}  // namespace leasehold

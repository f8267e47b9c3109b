#include "worker/text/grammar/grammar_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/expects.hpp"
#include "worker/text/grammar/grammar_check.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kLastCodePoint = 0x10FFFF;
/// A repetition up to this count is a chain of rules; a longer one has blocks, which need fewer
/// symbols.
constexpr std::uint32_t kMaxChain = 128;
constexpr std::uint32_t kBlock = 64;

/// Sorts and merges the ranges, so that no two of them touch.
void normalise(CharacterClass& characters) {
  std::ranges::sort(characters);
  CharacterClass merged;
  for (const CodePoints& range : characters) {
    if (!merged.empty() && range.low <= merged.back().high + 1) {
      merged.back().high = std::max(merged.back().high, range.high);
    } else {
      merged.push_back(range);
    }
  }
  characters = std::move(merged);
}

}  // namespace

CharacterClass complement_of(CharacterClass characters) {
  normalise(characters);
  CharacterClass others;
  std::uint32_t next = 0;
  for (const CodePoints& range : characters) {
    if (range.low > next) others.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLastCodePoint) others.push_back({next, kLastCodePoint});
  return others;
}

RuleId GrammarBuilder::declare(std::string name) {
  rules_.push_back({std::move(name), {}});
  defined_.push_back(false);
  return static_cast<RuleId>(rules_.size() - 1);
}

void GrammarBuilder::define(RuleId rule, std::vector<Symbols> alternatives) {
  expects(!defined_[rule], "a rule is defined once");
  defined_[rule] = true;
  if (is_full()) return;
  for (const Symbols& alternative : alternatives) {
    rules_[rule].alternatives.push_back(static_cast<std::uint32_t>(symbols_.size()));
    symbols_.insert(symbols_.end(), alternative.begin(), alternative.end());
    symbols_.push_back({});
  }
}

RuleId GrammarBuilder::make(std::vector<Symbols> alternatives) {
  const auto known = made_.find(alternatives);
  if (known != made_.end()) return known->second;
  const RuleId made = declare({});
  if (!is_full()) made_.emplace(alternatives, made);
  define(made, std::move(alternatives));
  return made;
}

Symbols GrammarBuilder::as_rule(const Symbols& what) {
  return rule(make({what}));
}

GrammarSymbol GrammarBuilder::bytes(const ByteSet& set) {
  const auto [found, is_new] =
      byte_set_index_.emplace(set, static_cast<std::uint32_t>(byte_sets_.size()));
  if (is_new) byte_sets_.push_back(set);
  return {GrammarSymbol::Kind::Bytes, found->second};
}

Symbols GrammarBuilder::text(std::string_view bytes_of_text) {
  Symbols symbols;
  for (const char c : bytes_of_text) {
    ByteSet one;
    one.add(static_cast<std::uint8_t>(c));
    symbols.push_back(bytes(one));
  }
  return symbols;
}

Symbols GrammarBuilder::character(CharacterClass characters) {
  normalise(characters);
  const auto known = characters_.find(characters);
  if (known != characters_.end()) return known->second;
  ByteSet ascii;
  std::vector<Symbols> alternatives;
  for (const CodePoints& range : characters) {
    for (const Utf8Sequence& spelling : utf8_ranges(range)) {
      Symbols symbols;
      for (const ByteRange& part : spelling) {
        ByteSet set;
        set.add(part.low, part.high);
        if (spelling.size() == 1) ascii.add(part.low, part.high);
        symbols.push_back(bytes(set));
      }
      if (spelling.size() > 1) alternatives.push_back(std::move(symbols));
    }
  }
  if (!ascii.empty() || alternatives.empty()) alternatives.push_back({bytes(ascii)});
  Symbols symbols = choice(std::move(alternatives));
  characters_.emplace(std::move(characters), symbols);
  return symbols;
}

Symbols GrammarBuilder::choice(std::vector<Symbols> alternatives) {
  if (alternatives.size() == 1) return alternatives.front();
  return rule(make(std::move(alternatives)));
}

Symbols GrammarBuilder::repeat(const Symbols& what, Repetition times) {
  const auto [min, max] = times;
  if (min == 1 && max == 1) return what;  // needs no rule
  // A repetition of more than one symbol repeats a rule, so that each copy costs one symbol.
  const bool many = min > 1 || (max && *max > 1);
  const Symbols one = many && what.size() > 1 ? as_rule(what) : what;
  Symbols symbols;
  std::uint32_t missing = min;
  if (missing > kMaxChain) {
    const Symbols block = as_rule(copies(one, kBlock));
    for (; missing > kBlock; missing -= kBlock) symbols = join(std::move(symbols), block);
  }
  symbols = join(std::move(symbols), copies(one, missing));
  too_large_ = too_large_ || symbols.size() > kMaxSymbols;
  if (max) return join(std::move(symbols), at_most(one, *max - min));
  const auto [loop, is_new] = loops_.try_emplace(one);
  if (is_new) {
    loop->second = declare({});
    define(loop->second, {join(one, rule(loop->second)), {}});
  }
  return join(std::move(symbols), rule(loop->second));
}

Symbols GrammarBuilder::copies(const Symbols& one, std::uint32_t n) const {
  Symbols symbols;
  for (std::uint32_t i = 0; i < n && symbols.size() <= kMaxSymbols; ++i)
    symbols.insert(symbols.end(), one.begin(), one.end());
  return symbols;
}

/// x{0,3} becomes (x (x (x)?)?)?, built from the inside and shared by all repetitions of x. A long
/// repetition becomes blocks: x{0,n} = x{64} x{0,n-64} | x{0,63}, which a text follows with two
/// parses.
Symbols GrammarBuilder::at_most(const Symbols& one, std::uint32_t n) {
  if (n == 0) return {};
  std::vector<Symbols>& chain = chains_[one];
  if (chain.empty()) chain.emplace_back();
  const std::uint32_t n_blocks = n > kMaxChain ? (n - kMaxChain + kBlock - 1) / kBlock : 0;
  const std::uint32_t n_chain = n - n_blocks * kBlock;
  while (chain.size() <= std::max(n_chain, n_blocks > 0 ? kBlock - 1 : 0) && !is_full())
    chain.push_back(rule(make({join(one, chain.back()), {}})));
  if (is_full()) return {};
  Symbols all = chain[n_chain];
  if (n_blocks == 0) return all;
  const Symbols block = as_rule(copies(one, kBlock));
  const Symbols less = chain[kBlock - 1];
  for (std::uint32_t i = 0; i < n_blocks && !is_full(); ++i)
    all = rule(make({join(block, all), less}));
  return all;
}

Result<Grammar> GrammarBuilder::take(RuleId root) {
  if (is_full()) {
    return fail(Errc::BadRequest,
                fmt::format("the grammar has more than {} symbols after expanding repetitions "
                            "and character classes; use smaller ones",
                            kMaxSymbols));
  }
  for (RuleId rule = 0; rule < rules_.size(); ++rule) {
    if (!defined_[rule])
      return fail(Errc::BadRequest, fmt::format("rule '{}' is not defined", rules_[rule].name));
  }
  return Grammar{std::move(byte_sets_), std::move(symbols_), std::move(rules_), root, {}};
}

Result<Grammar> GrammarBuilder::finish(RuleId root) {
  Grammar grammar = TRY(take(root));
  TRY(check_grammar(grammar));
  return grammar;
}

Result<Grammar> GrammarBuilder::finish_reachable(RuleId root) {
  Grammar grammar = TRY(take(root));
  TRY(drop_unproductive(grammar));
  return grammar;
}

}  // namespace leasehold

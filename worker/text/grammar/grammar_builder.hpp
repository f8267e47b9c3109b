/// Builds grammars, for GBNF and for JSON schema.
///
///   GrammarBuilder b;
///   const RuleId list = b.declare("list");
///   b.define(list, {b.join(b.text("["), b.repeat(b.rule(item), 0, 8), b.text("]"))});
///   Result<Grammar> grammar = b.finish(list);
///
/// Threads: one.
#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "common/result.hpp"
#include "worker/text/grammar/grammar.hpp"
#include "worker/text/grammar/utf8_ranges.hpp"

namespace leasehold {

using RuleId = std::uint32_t;
using Symbols = std::vector<GrammarSymbol>;

/// How often a part may occur. By default any number of times.
struct Repetition {
  std::uint32_t min = 0;
  std::optional<std::uint32_t> max;  ///< Empty: unlimited.
};

inline constexpr std::uint32_t kMaxRepetitions = 1u << 16;
inline constexpr int kMaxGrammarNesting = 64;  ///< Limit for parentheses and groups.

using CharacterClass = std::vector<CodePoints>;

/// All scalar values except `characters`.
CharacterClass complement_of(CharacterClass characters);

class GrammarBuilder {
 public:
  static constexpr std::size_t kMaxSymbols = std::size_t{1} << 15;

  RuleId declare(std::string name);
  void define(RuleId rule, std::vector<Symbols> alternatives);
  bool is_defined(RuleId rule) const { return defined_[rule]; }

  static Symbols rule(RuleId rule) { return {{GrammarSymbol::Kind::Rule, rule}}; }
  /// Makes `what` a rule, so that each copy costs one symbol.
  Symbols as_rule(const Symbols& what);
  Symbols text(std::string_view bytes);
  /// One character of the class, in UTF-8.
  Symbols character(CharacterClass characters);
  Symbols choice(std::vector<Symbols> alternatives);
  Symbols repeat(const Symbols& what, Repetition times);

  template <class... More>
  static Symbols join(Symbols first, const More&... more) {
    (first.insert(first.end(), more.begin(), more.end()), ...);
    return first;
  }

  /// True once the grammar exceeds its limit. `finish` will fail, so callers can stop early.
  bool is_full() const {
    return too_large_ || symbols_.size() > kMaxSymbols || rules_.size() > kMaxSymbols;
  }

  /// Errors: BadRequest for a rule that is declared but not defined, that no text can complete, or
  /// that is left recursive, with its name; and for a grammar that is too large.
  Result<Grammar> finish(RuleId root);
  /// Does what finish does, but drops alternatives that no text can complete. Fails for them only
  /// if none is left at `root`.
  Result<Grammar> finish_reachable(RuleId root);

 private:
  Result<Grammar> take(RuleId root);
  Symbols copies(const Symbols& one, std::uint32_t n) const;
  Symbols at_most(const Symbols& one, std::uint32_t n);
  RuleId make(std::vector<Symbols> alternatives);
  GrammarSymbol bytes(const ByteSet& set);

  std::vector<GrammarSymbol> symbols_;
  std::vector<GrammarRule> rules_;
  std::vector<bool> defined_;
  std::vector<ByteSet> byte_sets_;
  std::map<ByteSet, std::uint32_t> byte_set_index_;
  std::map<CharacterClass, Symbols> characters_;
  std::map<Symbols, std::vector<Symbols>> chains_;  ///< Element n: at most n times the key.
  std::map<Symbols, RuleId> loops_;                 ///< Any number of times the key.
  std::map<std::vector<Symbols>, RuleId> made_;     ///< Rules without a name, each once.
  bool too_large_ = false;
};

}  // namespace leasehold

/// Compiles a grammar and checks what worker/text/grammar promises about the cost and the size of
/// the result.
#pragma once

#include <algorithm>

#include "tests/fuzz/allocations.hpp"
#include "tests/fuzz/input.hpp"
#include "worker/text/grammar/compile.hpp"
#include "worker/text/grammar/grammar_builder.hpp"

namespace leasehold::fuzz {

/// Steps are counted by the code under test. If it forgot to count some of its work, it allocates
/// more than this.
inline constexpr std::size_t kMaxCompileBytes = std::size_t{512} << 20;

inline void check_size(const Grammar& grammar) {
  check(grammar.symbols.size() <= GrammarBuilder::kMaxSymbols);
  check(grammar.rules.size() <= GrammarBuilder::kMaxSymbols);
  check(grammar.byte_sets.size() <= GrammarBuilder::kMaxSymbols);
  const UncheckedParts& unchecked = grammar.unchecked;
  check(unchecked.listed.size() <= UncheckedParts::kMaxListed);
  check(std::ranges::all_of(unchecked.listed, [](const auto& one) { return one.size() <= 256; }));
}

/// Precondition: the text is within SamplingParams::kMaxGrammarBytes.
inline Result<std::shared_ptr<const Grammar>> compile_within_bounds(const GrammarSource& source) {
  WorkBudget work;
  const std::size_t before = allocated_bytes();
  auto grammar = compile_grammar(source, work);
  check(allocated_bytes() - before <= kMaxCompileBytes);
  check(work.spent <= WorkBudget::kMaxCompileSteps);
  // The first refused step ends the compile.
  check(work.refusals == (grammar ? 0 : std::min<std::size_t>(work.refusals, 1)));
  check(grammar || grammar.error().code == Errc::BadRequest);
  if (grammar) check_size(**grammar);
  return grammar;
}

}  // namespace leasehold::fuzz

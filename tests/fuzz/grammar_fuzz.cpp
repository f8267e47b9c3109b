// Grammars and JSON schemas from tenants. Input: one byte whose lowest bits choose the kind, then
// the text. Checks the bounds of compiling. If it compiles, the test follows some tokens that the
// mask allows.
#include <array>

#include "tests/fuzz/compile_bounds.hpp"
#include "worker/text/grammar/grammar_matcher.hpp"
#include "worker/text/grammar/piece_trie.hpp"

using namespace leasehold;

namespace {

using State = GrammarMatcher::State;

constexpr std::size_t kMaskUnits = std::size_t{1} << 20;
constexpr std::size_t kMostInOneStep = 2 * GrammarMatcher::kMaxStacks;

PieceTrie bytes_and_pairs() {
  static std::array<std::string, 1024> pieces;
  std::vector<std::string_view> views;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = static_cast<char>(i);
    if (i >= 256) pieces[i] += R"(",:}]{[0)"[i / 256 + i % 5];
    views.push_back(pieces[i]);
  }
  return PieceTrie(views);
}

void walk(std::shared_ptr<const Grammar> grammar, std::uint64_t choices) {
  static const PieceTrie trie = bytes_and_pairs();
  GrammarMatcher matcher(std::move(grammar));
  WorkBudget first{kMaskUnits};
  State state = matcher.start(first);
  if (state == GrammarMatcher::kUnfinished) return;
  for (int step = 0; step < 24; ++step) {
    state = matcher.retain(state).first;
    TokenMask mask(trie.n_vocab());
    WorkBudget budget{kMaskUnits};
    auto walk = trie.walk_from(state);
    const bool is_whole = trie.advance(walk, matcher, mask, budget);
    fuzz::check(budget.spent < kMaskUnits + kMostInOneStep);
    if (!is_whole || matcher.overflowed()) return;
    std::vector<TokenId> allowed;
    mask.for_each([&](TokenId token) {
      if (token < 256) allowed.push_back(token);
      return true;
    });
    if (allowed.empty()) return;
    choices = choices * 6364136223846793005u + 1442695040888963407u;
    const TokenId byte = allowed[(choices >> 33) % allowed.size()];
    state = matcher.next(state, static_cast<std::uint8_t>(byte));
    fuzz::check(state != GrammarMatcher::kDead || matcher.overflowed());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input{{data, size}};
  static constexpr GrammarKind kKinds[] = {GrammarKind::Gbnf, GrammarKind::JsonSchema,
                                           GrammarKind::Gbnf, GrammarKind::LenientJsonSchema};
  const GrammarKind kind = kKinds[input.byte() % 4];
  const auto rest = input.rest();
  const std::string text(reinterpret_cast<const char*>(rest.data()), rest.size());
  if (text.size() > SamplingParams::kMaxGrammarBytes) return 0;
  const auto grammar = fuzz::compile_within_bounds({kind, text});
  if (grammar) walk(*grammar, size);
  return 0;
}

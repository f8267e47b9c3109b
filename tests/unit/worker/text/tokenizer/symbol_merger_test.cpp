#include "worker/text/tokenizer/symbol_merger.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

namespace {

/// How often the merging of `n` equal symbols looks for a union; unions up to 64 bytes exist.
std::size_t lookups_of(std::uint32_t n) {
  constexpr std::uint32_t kLongest = 64;
  SymbolMerger symbols;
  for (std::uint32_t i = 0; i < n; ++i) symbols.add(1, 0);
  std::size_t lookups = 0;
  using Symbol = SymbolMerger::Symbol;
  symbols.merge([&](const Symbol& a, const Symbol& b) -> std::optional<SymbolMerger::Merge> {
    ++lookups;
    const std::uint32_t size_bytes = a.size_bytes + b.size_bytes;
    if (a.size_bytes != b.size_bytes || size_bytes > kLongest) return std::nullopt;
    return SymbolMerger::Merge{-static_cast<float>(size_bytes), 0};
  });
  return lookups;
}

}  // namespace

TEST_CASE("symbol merger: twice the symbols take twice the lookups") {
  for (const std::uint32_t n : {1000u, 10'000u, 100'000u})
    CHECK(lookups_of(2 * n) < 2 * lookups_of(n) + 100);
}

#include "worker/engine/propose/ngram_proposer.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/random.hpp"

namespace leasehold::testing {
namespace {

std::vector<TokenId> proposed(NgramIndex& index, const std::vector<TokenId>& text,
                              std::uint32_t most = 4) {
  std::vector<TokenId> proposals;
  index.propose(text, most, proposals);
  return proposals;
}

std::vector<TokenId> random_text(std::size_t size, std::uint64_t vocabulary) {
  std::vector<TokenId> text(size);
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<TokenId>(random_at(5, i) % vocabulary);
  return text;
}

}  // namespace

TEST_CASE("n-grams: what followed the last tokens before is proposed") {
  NgramIndex index;
  CHECK(proposed(index, {1, 2}).empty());
  CHECK(proposed(index, {1, 2, 3, 4, 5, 6, 7}).empty());
  CHECK(proposed(index, {1, 2, 3, 4, 5, 6, 7, 9, 2, 3, 4}) == std::vector<TokenId>{5, 6, 7, 9});
  CHECK(proposed(index, {1, 2, 3, 4, 5, 6, 7, 9, 2, 3, 4}, 2) == std::vector<TokenId>{5, 6});
}

TEST_CASE("n-grams: of several occurrences the last one counts") {
  NgramIndex index;
  CHECK(proposed(index, {1, 2, 3, 4, 9, 1, 2, 3, 5, 9, 1, 2, 3}, 1) == std::vector<TokenId>{5});
}

TEST_CASE("n-grams: a text with a short period goes on with it") {
  NgramIndex index;
  CHECK(proposed(index, {8, 1, 2, 1, 2, 1}, 5) == std::vector<TokenId>{2, 1, 2, 1, 2});
  CHECK(proposed(index, {8, 1, 2, 1, 2, 1, 1, 1, 1, 1}, 3) == std::vector<TokenId>{1, 1, 1});
}

TEST_CASE("n-grams: while a text grows, each proposal is what followed the last occurrence") {
  const std::vector<TokenId> text = random_text(1'500, 4);
  NgramIndex index;
  std::size_t found = 0;
  for (std::size_t size = NgramIndex::kRun + 1; size <= text.size(); ++size) {
    const auto end = text.begin() + static_cast<long>(size);
    const std::vector<TokenId> proposals = proposed(index, {text.begin(), end}, 1);
    if (proposals.empty()) continue;  // a collision forgot it, or it is the first
    const auto run = end - NgramIndex::kRun;
    const auto last = std::find_end(text.begin(), end - 1, run, end);
    REQUIRE(last != end - 1);
    REQUIRE(proposals[0] == *(last + NgramIndex::kRun));
    ++found;
  }
  REQUIRE(found > 1'000);
}

TEST_CASE("n-grams: a long text is read over several calls, and then proposes") {
  std::vector<TokenId> text = random_text(3 * NgramIndex::kMaxNewTokens, 50'000);
  const std::size_t again = text.size() - 50;
  const std::vector<TokenId> run(text.begin() + again, text.begin() + again + NgramIndex::kRun);
  text.insert(text.end(), run.begin(), run.end());
  NgramIndex index;
  int calls = 1;
  while (proposed(index, text).empty() && calls < 10) ++calls;
  CHECK(calls == 3);
  const auto behind = text.begin() + again + NgramIndex::kRun;
  CHECK(proposed(index, text, 3) == std::vector<TokenId>(behind, behind + 3));
}

}  // namespace leasehold::testing

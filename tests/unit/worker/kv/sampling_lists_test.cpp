#include "worker/kv/sampling_lists.hpp"

#include <catch2/catch.hpp>

namespace leasehold {
namespace {

SamplingParams full() {
  return {.logit_bias = {{3, -1.5f}, {9, 100.0f}},
          .stop_tokens = {7, 8, 9},
          .stop = {"END", "</s>"},
          .grammar = {GrammarKind::Gbnf, "root ::= \"x\""}};
}

}  // namespace

TEST_CASE("sampling lists: unpacking restores what was packed") {
  const std::vector<std::byte> bytes = pack_sampling_lists(full());
  SamplingParams again;
  REQUIRE(unpack_sampling_lists(bytes, again));
  REQUIRE(again == full());
}

TEST_CASE("sampling lists: the kind of a grammar is restored, an unknown one is FileCorrupt") {
  const auto last = static_cast<int>(GrammarKind::Regex);
  for (int kind = 1; kind <= last + 1; ++kind) {
    const SamplingParams params{.grammar = {static_cast<GrammarKind>(kind), "{}"}};
    SamplingParams again;
    const auto unpacked = unpack_sampling_lists(pack_sampling_lists(params), again);
    REQUIRE(unpacked.has_value() == (kind <= last));
    if (unpacked) REQUIRE(again == params);
  }
}

TEST_CASE("sampling lists: empty lists pack to no bytes") {
  REQUIRE(pack_sampling_lists({}).empty());
  REQUIRE(pack_sampling_lists({.temperature = 1.0f, .top_k = 40}).empty());
  for (const SamplingParams& one :
       {SamplingParams{.stop = {"x"}}, SamplingParams{.stop_tokens = {1}},
        SamplingParams{.grammar = {GrammarKind::JsonObject, {}}}}) {
    REQUIRE_FALSE(pack_sampling_lists(one).empty());
  }
}

TEST_CASE("sampling lists: the largest lists fit the bound") {
  SamplingParams largest;
  largest.logit_bias.resize(SamplingParams::kMaxLogitBiases);
  largest.stop_tokens.resize(SamplingParams::kMaxStopTokens);
  largest.stop.assign(SamplingParams::kMaxStops, std::string(SamplingParams::kMaxStopBytes, 's'));
  largest.grammar = {GrammarKind::Gbnf, std::string(SamplingParams::kMaxGrammarBytes, 'g')};
  REQUIRE(pack_sampling_lists(largest).size() == kMaxSamplingListsBytes);
}

TEST_CASE("sampling lists: truncated, surplus and malformed bytes are FileCorrupt") {
  const std::vector<std::byte> bytes = pack_sampling_lists(full());
  SamplingParams params;
  for (std::size_t n = 1; n < bytes.size(); ++n) {
    const auto cut = unpack_sampling_lists(std::span(bytes).first(n), params);
    REQUIRE(cut.error().code == Errc::FileCorrupt);
  }
  std::vector<std::byte> more = bytes;
  more.push_back(std::byte{0});
  REQUIRE(unpack_sampling_lists(more, params).error().code == Errc::FileCorrupt);
  for (const std::size_t at : {3u, 23u, 39u}) {  // the highest byte of each count
    std::vector<std::byte> vast = bytes;
    vast[at] = std::byte{0xFF};
    REQUIRE(unpack_sampling_lists(vast, params).error().code == Errc::FileCorrupt);
  }
}

}  // namespace leasehold

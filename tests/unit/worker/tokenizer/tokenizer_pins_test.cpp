// The tokenizer against real vocabularies: ids that others computed, and text that comes back.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "common/random.hpp"
#include "common/utf8.hpp"
#include "tests/support/places.hpp"
#include "tests/unit/worker/model/gguf_builder.hpp"
#include "worker/tokenizer/stream_decoder.hpp"
#include "worker/tokenizer/tokenizer.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

using Tokens = std::vector<TokenId>;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t at; (at = text.find(separator, start)) != std::string::npos;) {
    parts.push_back(text.substr(start, at - start));
    start = at + separator.size();
  }
  parts.push_back(text.substr(start));
  return parts;
}

Tokens ids_of(const std::string& line) {
  std::istringstream words(line);
  return Tokens(std::istream_iterator<TokenId>(words), {});
}

Tokenizer tokenizer_at(const std::string& path) {
  const auto file = GgufFile::open(path);
  REQUIRE(file.has_value());
  auto tokenizer = Tokenizer::from_metadata(*file);
  REQUIRE(tokenizer.has_value());
  return std::move(*tokenizer);
}

std::string utf8_of(std::uint32_t code_point) {
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80 | (code_point >> shift & 0x3f));
  };
  const auto lead = [&](int mark, int shift) {
    return static_cast<char>(mark | code_point >> shift);
  };
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  if (code_point < 0x800) return {lead(0xC0, 6), tail(0)};
  if (code_point < 0x10000) return {lead(0xE0, 12), tail(6), tail(0)};
  return {lead(0xF0, 18), tail(12), tail(6), tail(0)};
}

/// Mostly what people write, sometimes anything. U+2581 is left out: it means a space in here.
std::string random_text(SeededRandom& random) {
  struct Range {
    std::uint32_t first, count;
  };
  constexpr Range kRanges[] = {{' ', 1},         {' ', 95},          {'a', 26},
                               {0, 0x80},        {0xA0, 0x500},      {0x4E00, 0x5000},
                               {0x1F300, 0x300}, {0xE000, 0x101FFF}, {0x2580, 0x20}};
  std::string text;
  for (std::uint64_t n = random.below(60); n > 0; --n) {
    const Range& range = kRanges[random.below(std::size(kRanges))];
    const std::uint32_t code_point =
        range.first + static_cast<std::uint32_t>(random.below(range.count));
    if (code_point != 0x2581 && code_point < 0x110000) text += utf8_of(code_point);
  }
  return text;
}

std::uint64_t seed() {
  const char* text = std::getenv("SEED");
  return text ? std::strtoull(text, nullptr, 10) : 20261120;
}

/// Encodes, decodes token by token, and wants the text back, in whole characters all the way.
void check_round_trips(const Tokenizer& tokenizer, int n_texts) {
  SeededRandom random(seed());
  for (int i = 0; i < n_texts; ++i) {
    const std::string text = random_text(random);
    const auto tokens = tokenizer.encode(text);
    REQUIRE(tokens.has_value());
    StreamDecoder decoder(tokenizer);
    std::string decoded;
    bool whole = true;
    for (const TokenId token : *tokens) {
      const std::string now = decoder.push(token);
      whole = whole && is_utf8(now);
      decoded += now;
    }
    decoded += decoder.finish();
    INFO("SEED=" << seed() << " text " << i << ": " << text);
    CHECK(whole);
    CHECK(decoded == text);
  }
}

}  // namespace

TEST_CASE("tokenizer: every pinned text of the Llama vocabulary has its pinned tokens") {
  const std::string path = test_data("vocab/ggml-vocab-llama-spm.gguf");
  if (path.empty()) return;
  const Tokenizer tokenizer = tokenizer_at(path);
  const auto texts = split(contents(path + ".inp"), "\n__ggml_vocab_test__\n");
  const auto lines = split(contents(path + ".out"), "\n");
  REQUIRE(texts.size() > 40);
  REQUIRE(lines.size() >= texts.size());

  for (std::size_t i = 0; i < texts.size(); ++i) {
    INFO("case " << i << ": " << texts[i]);
    Tokens expected = ids_of(lines[i]);
    expected.insert(expected.begin(), 1);  // the pins leave BOS out
    CHECK(tokenizer.encode(texts[i]) == expected);
  }
}

TEST_CASE("tokenizer: random text comes back from the Llama vocabulary") {
  const std::string path = test_data("vocab/ggml-vocab-llama-spm.gguf");
  if (!path.empty()) check_round_trips(tokenizer_at(path), 500);
}

TEST_CASE("tokenizer: random text comes back from the small real model") {
  const std::string path = test_data("models/stories260K-q8_0.gguf");
  if (!path.empty()) check_round_trips(tokenizer_at(path), 500);
}

TEST_CASE("tokenizer: random text comes back from the tree's own model") {
  const std::string path = own_model_path();
  if (std::filesystem::exists(path))
    check_round_trips(tokenizer_at(path), 500);
  else
    WARN("not checked: there is no " << path);
}

// Tokenizers with real vocabularies: published token ids, and round trips.
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "common/random.hpp"
#include "common/utf8.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/test_paths.hpp"
#include "tests/support/test_seed.hpp"
#include "worker/text/tokenizer/stream_decoder.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

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

/// Mostly common text, sometimes any characters. Without U+2581, SentencePiece's space.
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
    if (code_point != 0x2581 && is_scalar_value(code_point)) append_utf8(text, code_point);
  }
  return text;
}

std::string vocabulary_path(const std::string& name) {
  return test_data("vocab/ggml-vocab-" + name + ".gguf");
}

/// Every published text has its published tokens.
void check_pins(const std::string& name) {
  const std::string path = vocabulary_path(name);
  if (path.empty()) return;
  const Tokenizer tokenizer = tokenizer_at(path);
  const auto texts = split(contents(path + ".inp"), "\n__ggml_vocab_test__\n");
  const auto lines = split(contents(path + ".out"), "\n");
  REQUIRE(texts.size() > 40);
  REQUIRE(lines.size() >= texts.size());
  const Tokens bos = *tokenizer.encode("");  // the published tokens have no BOS

  for (std::size_t i = 0; i < texts.size(); ++i) {
    INFO("case " << i << ": " << texts[i]);
    Tokens expected = ids_of(lines[i]);
    expected.insert(expected.begin(), bos.begin(), bos.end());
    CHECK(tokenizer.encode(texts[i]) == expected);
  }
}

/// Decodes token by token; `whole` is true if every part is whole characters.
std::string decoded(const Tokenizer& tokenizer, const Tokens& tokens, bool& whole) {
  StreamDecoder decoder(tokenizer);
  std::string text;
  whole = true;
  for (const TokenId token : tokens) {
    const std::string now = decoder.push(token);
    whole = whole && is_utf8(now);
    text += now;
  }
  return text + decoder.finish();
}

void check_round_trips(const Tokenizer& tokenizer, int n_texts, bool nfc) {
  SeededRandom random(test_seed(20261120));
  for (int i = 0; i < n_texts; ++i) {
    const std::string text = random_text(random);
    const auto tokens = tokenizer.encode(text);
    REQUIRE(tokens.has_value());
    bool whole = false;
    INFO("SEED=" << test_seed(20261120) << " text " << i << ": " << text);
    CHECK(decoded(tokenizer, *tokens, whole) == (nfc ? to_nfc(text) : text));
    CHECK(whole);
  }
}

/// For random bytes, the pieces of the tokens are the bytes, after an optional leading space.
void check_byte_round_trips(const Tokenizer& tokenizer, int n_texts, bool nfc) {
  SeededRandom random(test_seed(20261120) + 1);
  for (int i = 0; i < n_texts; ++i) {
    std::string text, back;
    for (std::uint64_t n = random.below(200); n > 0; --n)
      text += static_cast<char>(random.below(random.below(2) ? 256 : 128));
    const auto tokens = tokenizer.encode(text);
    REQUIRE(tokens.has_value());
    if (nfc) text = to_nfc(text);
    for (const TokenId token : *tokens) back += tokenizer.piece(token);
    INFO("SEED=" << test_seed(20261120) << " bytes " << i);
    CHECK(back == (tokenizer.adds_space_prefix() && !text.empty() ? " " + text : text));
  }
}

void check_texts(const std::string& path, bool nfc = false) {
  if (path.empty()) return;
  const Tokenizer tokenizer = tokenizer_at(path);
  check_round_trips(tokenizer, 500, nfc);
  check_byte_round_trips(tokenizer, 200, nfc);
}

}  // namespace

TEST_CASE("tokenizer pins: every text of the Llama 2 vocabulary") {
  check_pins("llama-spm");
}
TEST_CASE("tokenizer pins: every text of the Llama 3 vocabulary") {
  check_pins("llama-bpe");
}
TEST_CASE("tokenizer pins: every text of the Qwen 2 vocabulary") {
  check_pins("qwen2");
}
TEST_CASE("tokenizer pins: every text of the GPT-2 vocabulary") {
  check_pins("gpt-2");
}

TEST_CASE("tokenizer pins: random text comes back from every vocabulary") {
  for (const char* name : {"llama-spm", "llama-bpe", "qwen2", "gpt-2"}) {
    INFO(name);
    check_texts(vocabulary_path(name), std::string_view(name) == "qwen2");
  }
}

TEST_CASE("tokenizer pins: random text comes back from the models") {
  check_texts(test_data("models/stories260K-q8_0.gguf"));
  if (std::filesystem::exists(bundled_model_path()))
    check_texts(bundled_model_path());
  else
    WARN("not checked: there is no " << bundled_model_path());
}

TEST_CASE("tokenizer pins: Llama 3 turns in AsTokens text are control tokens") {
  const std::string path = vocabulary_path("llama-bpe");
  if (path.empty()) return;
  const Tokenizer tokenizer = tokenizer_at(path);
  const std::string turn =
      "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>";
  CHECK(tokenizer.encode(turn, SpecialTokens::AsTokens) ==
        Tokens{128000, 128006, 882, 128007, 271, 13347, 128009});
  CHECK(tokenizer.encode(turn)->size() > 20);
  CHECK(tokenizer.is_end_token(128009));  // the file names only 128001
  CHECK(tokenizer.is_end_token(128001));
}

// tokenizer_model_test "[bench]": tokens per second for a megabyte of text.
TEST_CASE("tokenizer pins: tokens a second", "[.][bench]") {
  for (const char* name : {"llama-spm", "llama-bpe", "qwen2", "gpt-2"}) {
    const std::string path = vocabulary_path(name);
    if (path.empty()) return;
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const Tokenizer tokenizer = tokenizer_at(path);
    const auto loaded = Clock::now();
    std::string text;
    const std::string pins = contents(path + ".inp");
    const std::string prose = contents(source_dir() + "/README.md");
    while (text.size() < 1'000'000) text += prose + pins;
    text.resize(1'000'000);
    const auto ready = Clock::now();
    const std::size_t n_tokens = tokenizer.encode(text)->size();
    const std::chrono::duration<double> load = loaded - start, encode = Clock::now() - ready;
    WARN(name << ": loaded in " << load.count() * 1e3 << " ms, " << n_tokens << " tokens in "
              << encode.count() * 1e3 << " ms, " << static_cast<double>(n_tokens) / encode.count()
              << " tokens/s");
  }
}

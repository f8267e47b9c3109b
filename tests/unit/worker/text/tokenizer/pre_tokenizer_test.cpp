#include "worker/text/tokenizer/pre_tokenizer.hpp"

#include <catch2/catch.hpp>

#include "common/random.hpp"
#include "worker/text/tokenizer/pre_tokenizer_table.hpp"

using namespace leasehold;
using Catch::Matchers::Contains;

namespace {

PreTokenizer pre_tokenizer(std::string_view name) {
  const PreTokenizerRow* row = find_pre_tokenizer(name);
  REQUIRE(row != nullptr);
  auto result = PreTokenizer::create(std::string(name), row->expressions);
  REQUIRE(result.has_value());
  return std::move(*result);
}

/// The words joined by "|".
std::string words(const PreTokenizer& splitter, std::string_view text) {
  std::string joined;
  const auto done = splitter.for_each_word(text, [&](std::string_view word) {
    if (!joined.empty()) joined += '|';
    joined += word;
  });
  REQUIRE(done.has_value());
  return joined;
}

std::string words(std::string_view name, std::string_view text) {
  return words(pre_tokenizer(name), text);
}

std::string joined(const PreTokenizer& splitter, std::string_view text) {
  std::string all;
  const auto done = splitter.for_each_word(text, [&](std::string_view word) { all += word; });
  return done ? all : done.error().detail;
}

/// One name of each pre-tokenizer.
constexpr const char* kPreTokenizerNames[] = {
    "default",        "gpt-2",       "llama-bpe", "qwen2",  "smollm", "falcon",  "deepseek-llm",
    "deepseek-coder", "deepseek-v3", "gpt-4o",    "tekken", "qwen35", "kimi-k2", "gemma4"};

}  // namespace

TEST_CASE("pre-tokenizer: contractions, digits, spaces and lines follow each model") {
  const std::string_view text = "Hello, y'all'S 1234  x\n\n y";
  CHECK(words("gpt-2", text) == "Hello|,| y|'|all|'|S| 1234| | x|\n\n| y");
  CHECK(words("llama-bpe", text) == "Hello|,| y|'all|'S| |123|4| | x|\n\n| y");
  CHECK(words("qwen2", text) == "Hello|,| y|'all|'S| |1|2|3|4| | x|\n\n| y");
  CHECK(words("smollm", text) == "Hello|,| y|'|all|'|S| |1|2|3|4| | x|\n\n| y");
  CHECK(words("tekken", text) == "Hello|,| y|'all|'S| |1|2|3|4| | x|\n\n| y");
  CHECK(words("gpt-4o", text) == "Hello|,| y|'all'S| |123|4| | x|\n\n| y");
}

TEST_CASE("pre-tokenizer: capitals within words, punctuation and ideographs follow each model") {
  CHECK(words("gpt-4o", "HelloWorld's a/b//\n") == "Hello|World's| a|/b|//\n");
  CHECK(words("tekken", "HelloWorld's") == "Hello|World|'s");
  CHECK(words("default", "x+y 1234!") == "x|+|y| |123|4|!");
  CHECK(words("default", "a`!") == "a|`|!");
  CHECK(words("falcon", "a`! 1234") == "a|`!| |123|4");
  CHECK(words("deepseek-coder", "ab 12\n中文。x") == "ab| |1|2|\n|中文|。|x");
  CHECK(words("deepseek-llm", "Ab 12中文\n .x  ") == "Ab| |12|中文|\n| .|x|  ");
  CHECK(words("deepseek-v3", "1234 中a x_y #if") == "123|4| |中|a| x|_y| #|if");
}

TEST_CASE("pre-tokenizer: marks and Chinese characters follow each model of 2026") {
  CHECK(words("qwen2", "हिन्दी e\u0301") == "ह|िन|्द|ी| e|\u0301");
  CHECK(words("qwen35", "हिन्दी e\u0301!\u0301") == "हिन्दी| e\u0301|!\u0301");
  CHECK(words("kimi-k2", "ab中文a ぁ 々〇。1234's") == "ab|中文|a| ぁ| |々〇|。|123|4|'s");
  CHECK(words("kimi-k2", "HelloWorld's 中/\n") == "Hello|World's| |中|/\n");
  CHECK(words("gpt-4o", "ab中文a") == "ab中文a");
  CHECK(words("minimax-m2", "HelloWorld's a/b//\n") == "Hello|World's| a|/b|//\n");
  for (const char* name : {"glm4", "lfm2", "pixtral"})
    CHECK(words(name, "y'all'S 1234\n\n y") == "y|'all|'S| |123|4|\n\n| y");
  CHECK(words("gemma4", "a b\n\n\nc\r\n") == "a b|\n\n\n|c\r|\n");
}

TEST_CASE("pre-tokenizer: spaces are those of current Unicode") {
  // U+180E was a space until Unicode 6.3.
  CHECK(words("gpt-2", "a \u180Eb") == "a| \u180E|b");
  CHECK(words("gpt-2", "a\u00A0\u3000b") == "a|\u00A0|\u3000|b");
}

TEST_CASE("pre-tokenizer: a run of bytes that are not UTF-8 is one word") {
  CHECK(words("gpt-2",
              "ab\xff\xfe"
              "cd \xe4\xb8") == "ab|\xff\xfe|cd| |\xe4\xb8");
}

TEST_CASE("pre-tokenizer: too much backtracking is a typed error") {
  const char* const hostile[] = {"(a|aa)+[bc]"};
  const auto splitter = PreTokenizer::create("hostile", hostile);
  REQUIRE(splitter.has_value());
  const auto cut = splitter->for_each_word(std::string(36, 'a'), [](std::string_view) {});
  REQUIRE_FALSE(cut.has_value());
  CHECK(cut.error().code == Errc::BadRequest);
  CHECK_THAT(cut.error().detail, Contains("hostile") && Contains("36 bytes"));
}

TEST_CASE("pre-tokenizer: an invalid expression is refused with its position") {
  const char* const broken[] = {"a", "b("};
  const auto splitter = PreTokenizer::create("broken", broken);
  REQUIRE_FALSE(splitter.has_value());
  CHECK(splitter.error().code == Errc::UnsupportedModel);
  CHECK_THAT(splitter.error().detail, Contains("\"b(\" at 2"));
}

TEST_CASE("pre-tokenizer: the words together are the text, for any bytes") {
  SeededRandom random(20261120);
  for (const char* name : kPreTokenizerNames) {
    const PreTokenizer splitter = pre_tokenizer(name);
    for (int i = 0; i < 100; ++i) {
      std::string text;
      for (std::uint64_t n = random.below(60); n > 0; --n) {
        constexpr std::string_view kPieces[] = {" ", "a", "B",  "'s",   "\n",
                                                "1", "é", "中", "\xff", "!"};
        text += kPieces[random.below(std::size(kPieces))];
      }
      INFO(name << ": " << text);
      CHECK(joined(splitter, text) == text);
    }
  }
}

// An expression with quadratic time would not finish on these runs.
TEST_CASE("pre-tokenizer: long runs take linear time") {
  for (const char* name : kPreTokenizerNames) {
    const PreTokenizer splitter = pre_tokenizer(name);
    const std::string spaces = std::string(1'000'000, ' ') + "1";
    CHECK((joined(splitter, spaces) == spaces));
    for (const char* unit :
         {"a", "A", " ", "\n", "1", "!", "'", "\u0301", "中", "\xff", " \n", "Aa"}) {
      INFO(name << ": many of \"" << unit << "\"");
      std::string text;
      for (int i = 0; i < 100'000; ++i) text += unit;
      for (const char* end : {"", "x", "?"}) CHECK((joined(splitter, text + end) == text + end));
    }
  }
}

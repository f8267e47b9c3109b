#include "worker/serve/prompt_check.hpp"

#include <catch2/catch.hpp>

#include "tests/support/tiny_tokenizer.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

std::optional<Error> refusal_by(std::string_view source) {
  const auto chat = ChatTemplate::parse(source, {.bos = "<s>", .eos = "</s>"});
  return check_prompts(tiny_tokenizer(), chat).value();
}

}  // namespace

TEST_CASE("prompt check: a template that renders a short chat is accepted") {
  CHECK_FALSE(refusal_by("{{ messages[0].content }}"));
}

TEST_CASE("prompt check: a template that refuses a short chat, or makes nothing of it, is named") {
  const auto raised = refusal_by("{{ raise_exception('a system message first') }}");
  REQUIRE(raised);
  CHECK_THAT(raised->detail, Catch::Contains("a system message first"));
  CHECK(refusal_by("{{ messages[7].content.x.y }}"));
  CHECK(refusal_by("{% for"));
}

TEST_CASE("prompt check: a tokenizer that cannot encode a letter is an error") {
  GgufBuilder builder;
  builder.set("tokenizer.ggml.model", "gpt2")
      .set("tokenizer.ggml.pre", "gpt-2")
      .set("tokenizer.ggml.tokens", std::vector<std::string>{"a"})
      .set("tokenizer.ggml.token_type", std::vector<std::int32_t>{1})
      .set("tokenizer.ggml.merges", std::vector<std::string>{});
  const TemporaryFile file(builder.bytes());
  const auto tokenizer = Tokenizer::from_metadata(*GgufFile::open(file.path()));
  REQUIRE(tokenizer);
  const auto chat = ChatTemplate::parse("a", {});
  CHECK(check_prompts(*tokenizer, chat).error().detail.contains("no token for the byte"));
}

#include "worker/text/chat/chat_template.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/gguf_builder.hpp"
#include "worker/text/chat/json_value.hpp"

using namespace leasehold;
using namespace leasehold::testing;
using Catch::Matchers::Contains;

namespace {

const std::vector<ChatMessage> kMessages = {{"system", "Be brief."}, {"user", "Hi"}};

Result<ChatTemplate> template_of(const GgufBuilder& builder) {
  const TemporaryFile file(builder.bytes());
  const auto gguf = GgufFile::open(file.path());
  REQUIRE(gguf.has_value());
  return ChatTemplate::from_metadata(*gguf);
}

std::string rendered(const GgufBuilder& builder) {
  const auto chat = template_of(builder);
  REQUIRE(chat.has_value());
  return chat->render({.messages = messages_value(kMessages)}).value().bytes();
}

}  // namespace

TEST_CASE("chat: a file without a template gets ChatML") {
  CHECK(rendered(GgufBuilder{}) ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\n");
}

TEST_CASE("chat: a file's own template finds its messages and control tokens") {
  GgufBuilder builder;
  builder.set(
      "tokenizer.chat_template",
      "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m['content'] }}{{ eos_token }}{% "
      "endfor %}{{ unk_token }}|{{ pad_token }}|{{ tools is none }}|{{ add_generation_prompt }}");
  builder.set("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>"});
  builder.set("tokenizer.ggml.bos_token_id", 1u);
  builder.set("tokenizer.ggml.eos_token_id", 2u);
  CHECK(rendered(builder) == "<s>system: Be brief.</s>user: Hi</s>||True|True");
}

TEST_CASE("chat: a control token that is not in the vocabulary is a corrupt file") {
  GgufBuilder builder;
  builder.set("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>"});
  builder.set("tokenizer.ggml.bos_token_id", 1u);
  const auto chat = template_of(builder);
  REQUIRE_FALSE(chat.has_value());
  CHECK(chat.error().code == Errc::FileCorrupt);
  CHECK_THAT(chat.error().detail, Contains("bos_token_id is 1; the vocabulary has 1 tokens"));
}

TEST_CASE("chat: an id that means none is an absent token") {
  GgufBuilder builder;
  builder.set("tokenizer.chat_template",
              "{{ pad_token is defined }}{{ pad_token }}|{{ bos_token }}");
  builder.set("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>"});
  const std::string without = rendered(builder);
  builder.set("tokenizer.ggml.padding_token_id", 4294967295u);
  builder.set_raw("tokenizer.ggml.bos_token_id", GgufType::Int32, raw<std::int32_t>(-1));
  CHECK(rendered(builder) == without);
}

TEST_CASE("chat: an unsupported template is refused with the construct and its line") {
  const auto chat = template_of(GgufBuilder().set("tokenizer.chat_template", "\n{% import 'a' %}"));
  REQUIRE_FALSE(chat.has_value());
  CHECK(chat.error().code == Errc::UnsupportedModel);
  CHECK_THAT(chat.error().detail, Contains("line 2: the tag 'import' is not supported"));
}

TEST_CASE("chat: the output of a template says how it wants a call without content") {
  const auto style_of = [](std::string_view turn) {
    const auto chat =
        ChatTemplate::parse("None{% for m in messages %}" + std::string(turn) + "{% endfor %}", {});
    return std::pair(chat->call_style().empty_content_as_text,
                     chat->call_style().arguments_as_text);
  };
  using Style = std::pair<bool, bool>;
  const std::string name =
      "{% set f = m.tool_calls[0].function if m.tool_calls else {} %}{{ f.name }}";
  CHECK(style_of("{{ m.content or '' }}" + name + "{{ f.arguments | tojson }}") ==
        Style(false, false));
  CHECK(style_of("{{ m.content }}" + name) == Style(true, false));
  CHECK(style_of("{{ m.content + '' }}" + name) == Style(true, false));
  CHECK(style_of("{% if m.content is none %}" + name + "{{ f.arguments + '' }}{% endif %}") ==
        Style(false, true));
  CHECK(style_of("{{ m.content + '' }}" + name + "{{ (f.arguments or '') + '' }}") ==
        Style(true, true));
  CHECK(style_of("{{ m.content | trim }}") == Style(true, false));  // it prints no calls
}

TEST_CASE("chat: a template that fails without a tool's description is known by it") {
  const auto needs = [](const std::string& tool) {
    const auto chat = ChatTemplate::parse("{% for t in tools or [] %}" + tool + "{% endfor %}", {});
    return chat->needs_tool_descriptions();
  };
  CHECK(needs("{{ t.function.name + t.function.description }}"));
  CHECK_FALSE(needs("{{ t.function.name }}{{ t.function.description }}"));
  CHECK_FALSE(needs("{{ t | tojson }}"));
  CHECK_FALSE(needs("{{ t.function.description + '' }}"));  // it prints no names of tools
}

TEST_CASE("chat: JSON keeps the order of its keys and the kinds of its numbers") {
  const auto json = nlohmann::ordered_json::parse(
      R"({"b": [1, -2, 1.0, 18446744073709551615], "a": {"x": null, "y": true}})");
  const auto chat = ChatTemplate::parse("{{ messages }}{{ messages | tojson }}", {});
  const auto text = chat->render({.messages = value_from_json(json).value()});
  CHECK(text.value().bytes() ==
        "{'b': [1, -2, 1.0, 1.8446744073709552e+19], 'a': {'x': None, 'y': True}}"
        R"({"b": [1, -2, 1.0, 1.8446744073709552e+19], "a": {"x": null, "y": true}})");
}

TEST_CASE("chat: JSON that nests too deep is a bad request") {
  std::string text;
  for (int i = 0; i < 200; ++i) text += '[';
  for (int i = 0; i < 200; ++i) text += ']';
  const auto value = value_from_json(nlohmann::ordered_json::parse(text));
  REQUIRE_FALSE(value.has_value());
  CHECK(value.error().code == Errc::BadRequest);
}

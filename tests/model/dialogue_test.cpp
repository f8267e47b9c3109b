/// Tokens and prompts of the vendors' vocabularies and chat templates, as llama.cpp and Jinja2 make
/// them (tests/data/README.md).
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/utf8.hpp"
#include "tests/support/required.hpp"
#include "tests/support/test_paths.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/chat/json_value.hpp"
#include "worker/text/chat/tool_calls.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::testing {
namespace {

using Json = nlohmann::ordered_json;

/// Models in the tree.
constexpr std::string_view kModels[] = {"gpt-oss", "granite",    "mistral3", "olmo2",
                                        "phi3",    "phi3-short", "qwen3vl",  "smollm3"};
/// Vocabularies in the tree.
constexpr std::string_view kVocabularies[] = {"dbrx", "gemma3",  "gemma4", "glm4",
                                              "lfm2", "pixtral", "qwen35"};
/// Models whose template is compared.
constexpr std::string_view kTemplates[] = {
    "deepseek2",      "gemma2",  "gemma3",        "gemma4-e", "gemma4-moe", "glm4moe",
    "gpt-oss",        "granite", "granitehybrid", "lfm2",     "lfm2moe",    "mistral3",
    "nemotron_h_moe", "phi3",    "phi3-short",    "qwen3",    "qwen35",     "qwen35moe",
    "qwen3next",      "qwen3vl", "smollm3"};
/// The clock of the prompts: 2026-10-05 12:00 UTC.
constexpr std::int64_t kNow = 1'791'201'600;

std::string data_path(std::string_view model, const char* ending) {
  return test_data_path("models-2026/tiny-" + std::string(model) + ending);
}

Json json_at(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

ChatRequest request_of(const Json& test) {
  ChatRequest request{.messages = required(value_from_json(test["messages"])),
                      .add_generation_prompt = test.value("add_generation_prompt", true),
                      .now_unix_s = kNow};
  if (test.contains("tools")) request.tools = required(value_from_json(test["tools"]));
  if (test.contains("enable_thinking"))
    request.extra.emplace_back("enable_thinking",
                               required(value_from_json(test["enable_thinking"])));
  return request;
}

/// The text that the template gave to raise_exception.
std::string error_of(const Json& test) {
  constexpr std::string_view kException = "TemplateError: ";
  return test["error"].get<std::string>().substr(kException.size());
}

void check_tokens(const std::string& model, const std::string& tokens) {
  const GgufFile file = required(GgufFile::open(model));
  const Tokenizer tokenizer = required(Tokenizer::from_metadata(file));
  const Json cases = json_at(tokens);
  REQUIRE(cases.size() >= 35);
  for (const Json& one : cases) {
    const auto text = one["text"].get<std::string>();
    CAPTURE(model, text);
    // Qwen's tokenizers compose characters first (NFC); llama.cpp leaves that out.
    if (model.contains("qwen") && to_nfc(text) != text) continue;
    // llama.cpp reads the tokens of the harmony format in every text; here a client cannot write
    // them.
    if (tokenizer.has_harmony() && !one["special"].get<bool>() && text.contains("<|constrain|>"))
      continue;
    const auto mode = one["special"].get<bool>() ? SpecialTokens::AsTokens : SpecialTokens::AsText;
    CHECK(required(tokenizer.encode(text, mode)) == one["ids"].get<std::vector<TokenId>>());
  }
}

}  // namespace

TEST_CASE("dialogue: every vocabulary makes the tokens of llama.cpp") {
  for (const std::string_view model : kModels)
    check_tokens(data_path(model, "-f32.gguf"), data_path(model, ".tok.json"));
  for (const std::string_view name : kVocabularies) {
    const std::string path = "vocabularies/" + std::string(name);
    check_tokens(test_data_path(path + ".gguf"), test_data_path(path + ".tok.json"));
  }
}

TEST_CASE("dialogue: every template makes the prompts of Jinja2") {
  const std::string_view model = GENERATE(from_range(std::begin(kTemplates), std::end(kTemplates)));
  const std::string prompts = data_path(model, ".chat.json");
  if (prompts.empty()) {
    WARN("not checked, no test data: the vendor's template of " << model);
    return;
  }
  const GgufFile file = required(GgufFile::open(data_path(model, "-f32.gguf")));
  const ChatTemplate chat = required(ChatTemplate::from_metadata(file));
  for (const Json& one : json_at(prompts)) {
    CAPTURE(model, one["case"].get<std::string>());
    const auto prompt = chat.render(request_of(one));
    const std::string made = prompt ? prompt->bytes() : prompt.error().detail;
    if (one.contains("prompt")) CHECK(made == one["prompt"].get<std::string>());
    if (one.contains("error")) CHECK_THAT(made, Catch::Matchers::EndsWith(error_of(one)));
  }
}

// The harmony form of gpt-oss has a parser of its own.
TEST_CASE("dialogue: the calls that a template writes are read from its text") {
  int read = 0;
  for (const std::string_view model : kTemplates) {
    const std::string prompts = data_path(model, ".chat.json");
    if (prompts.empty() || model == "gpt-oss") continue;
    const GgufFile file = required(GgufFile::open(data_path(model, "-f32.gguf")));
    const bool prints_calls = required(ChatTemplate::from_metadata(file)).prints_calls();
    for (const Json& one : json_at(prompts)) {
      if (one["case"] != "tool result" || !prints_calls || !one.contains("prompt")) continue;
      CAPTURE(model);
      ToolCallParser parser({{.name = "get_weather", .text_parameters = {"city", "unit"}}});
      std::vector<ToolCall> calls = parser.push(one["prompt"].get<std::string>()).calls;
      std::ranges::move(parser.finish().calls, std::back_inserter(calls));
      REQUIRE(calls.size() == 1);
      const Json expected = one["messages"][1]["tool_calls"][0]["function"];
      CHECK(calls[0].name == expected["name"]);
      CHECK(Json::parse(calls[0].arguments) == expected["arguments"]);
      ++read;
    }
  }
  if (read == 0) WARN("not checked, no test data: the vendors' templates");
}

}  // namespace leasehold::testing

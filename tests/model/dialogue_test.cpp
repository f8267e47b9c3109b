/// Tokens and prompts of the vendors' vocabularies and chat templates, as llama.cpp and Jinja2 make
/// them (tests/data/README.md).
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/utf8.hpp"
#include "tests/support/required.hpp"
#include "tests/support/test_paths.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/chat/json_value.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::testing {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kModels[] = {"gpt-oss", "granite",    "mistral3", "olmo2",
                                        "phi3",    "phi3-short", "qwen3vl",  "smollm3"};
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

}  // namespace

TEST_CASE("dialogue: every vocabulary makes the tokens of llama.cpp") {
  const std::string_view model = GENERATE(from_range(std::begin(kModels), std::end(kModels)));
  const GgufFile file = required(GgufFile::open(data_path(model, "-f32.gguf")));
  const Tokenizer tokenizer = required(Tokenizer::from_metadata(file));
  const Json cases = json_at(data_path(model, ".tok.json"));
  REQUIRE(cases.size() >= 35);
  for (const Json& one : cases) {
    const auto text = one["text"].get<std::string>();
    CAPTURE(model, text);
    // Qwen's tokenizers compose characters first (NFC); llama.cpp leaves that out.
    if (model.starts_with("qwen") && to_nfc(text) != text) continue;
    // llama.cpp reads the tokens of the harmony format in every text; here a client cannot write
    // them.
    if (tokenizer.has_harmony() && !one["special"].get<bool>() && text.contains("<|constrain|>"))
      continue;
    const auto mode = one["special"].get<bool>() ? SpecialTokens::AsTokens : SpecialTokens::AsText;
    CHECK(required(tokenizer.encode(text, mode)) == one["ids"].get<std::vector<TokenId>>());
  }
}

TEST_CASE("dialogue: every template makes the prompts of Jinja2") {
  const std::string_view model = GENERATE(from_range(std::begin(kModels), std::end(kModels)));
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
    CHECK((prompt ? prompt->bytes() : prompt.error().detail) == one["prompt"].get<std::string>());
  }
}

}  // namespace leasehold::testing

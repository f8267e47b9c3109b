// What the messages of a body become before they are encoded, and which bodies are refused.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/tiny_tokenizer.hpp"
#include "worker/http/api/tokenize_api.hpp"

using namespace leasehold;
using namespace leasehold::http;

namespace {

using Json = nlohmann::json;

struct TokenizeFixture {
  Answer ask(const Json& body) {
    const EncodeChat encode = [this](const wire::RequestSubmit& chat) {
      encoded.push_back(chat);
      return result;
    };
    return tokenize(body.dump(), tokenizer, model, encode);
  }
  std::string refused_field(Json more) {
    more.update({{"messages", {{{"role", "user"}, {"content", "Hi"}}}}});
    const Answer answer = ask(more);
    CHECK(answer.status == 400);
    return Json::parse(answer.body)["error"]["param"];
  }

  Tokenizer tokenizer = testing::tiny_tokenizer();
  ApiModel model{.name = "m", .max_context = 256};
  Result<std::vector<std::int32_t>> result = std::vector<std::int32_t>{1, 2, 3};
  std::vector<wire::RequestSubmit> encoded;
};

}  // namespace

TEST_CASE("tokenize: messages are encoded with the tools and variables of their chat") {
  TokenizeFixture fixture;
  const Json body{{"model", "m"},
                  {"messages",
                   {{{"role", "system"}, {"content", "Be brief"}},
                    {{"role", "user"}, {"content", {{{"type", "text"}, {"text", "Hi"}}}}}}},
                  {"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}},
                  {"chat_template_kwargs", {{"enable_thinking", false}}}};
  const Answer answer = fixture.ask(body);
  REQUIRE(answer.status == 200);
  CHECK(Json::parse(answer.body) ==
        Json({{"count", 3}, {"max_model_len", 256}, {"tokens", {1, 2, 3}}}));
  REQUIRE(fixture.encoded.size() == 1);
  const wire::RequestSubmit& chat = fixture.encoded.front();
  CHECK(chat.add_generation_prompt);
  REQUIRE(chat.messages->size() == 2);
  CHECK(chat.messages->at(0).role == "system");
  CHECK(chat.messages->at(1).content == "Hi");
  CHECK(Json::parse(chat.tools) == body["tools"]);
  CHECK(Json::parse(chat.chat_template_kwargs) == body["chat_template_kwargs"]);

  Json without = body;
  without["add_generation_prompt"] = false;
  CHECK(fixture.ask(without).status == 200);
  CHECK_FALSE(fixture.encoded.back().add_generation_prompt);
  without.erase("add_generation_prompt");
  without["continue_final_message"] = true;
  CHECK(fixture.ask(without).status == 200);
  CHECK(fixture.encoded.back().continue_final_message);
  CHECK_FALSE(fixture.encoded.back().add_generation_prompt);
}

TEST_CASE("tokenize: a prompt has control tokens by name only if it asks for them") {
  TokenizeFixture fixture;
  const auto tokens = [&](const Json& body) {
    return Json::parse(fixture.ask(body).body)["tokens"];
  };
  CHECK(tokens({{"prompt", "</s>"}}).size() > 2);
  CHECK(tokens({{"prompt", "</s>"}, {"parse_special", true}}) == Json({1, 2}));
  const Json bare{{"prompt", "</s>"}, {"parse_special", true}, {"add_special_tokens", false}};
  CHECK(tokens(bare) == Json::array({2}));
  Json spelt = bare;
  spelt["prompt"] = "<s></s>";
  CHECK(tokens(spelt) == Json({1, 2}));
}

TEST_CASE("tokenize: a body that names another model is refused") {
  TokenizeFixture fixture;
  fixture.model.aliases = {"alias"};
  const auto statuses_of = [&fixture](const Json& model) {
    const Json body{{"model", model}, {"prompt", "a"}, {"tokens", {5}}};
    const Answer back = detokenize(body.dump(), fixture.tokenizer, fixture.model);
    return std::pair(fixture.ask(body).status, back.status);
  };
  CHECK(statuses_of("m") == std::pair(200, 200));
  CHECK(statuses_of("alias") == std::pair(200, 200));
  CHECK(statuses_of(nullptr) == std::pair(200, 200));
  CHECK(statuses_of("other") == std::pair(404, 404));
  CHECK(statuses_of(5) == std::pair(400, 400));
}

TEST_CASE("tokenize: the names of the control tokens are those of the vocabulary") {
  const Json info = Json::parse(tokenizer_info(testing::tiny_tokenizer()).body);
  CHECK(info["bos_token"] == "<s>");
  CHECK(info["eos_token"] == "</s>");
}

TEST_CASE("tokenize: what the model's template cannot do is refused with its field") {
  TokenizeFixture fixture;
  CHECK(fixture.refused_field({{"prompt", "a"}}) == "prompt");
  CHECK(fixture.refused_field({{"chat_template", "{{ messages }}"}}) == "chat_template");
  CHECK(fixture.refused_field({{"continue_final_message", "x"}}) == "continue_final_message");
  CHECK(fixture.refused_field({{"tools", 5}}) == "tools");
  CHECK(fixture.refused_field({{"chat_template_kwargs", "x"}}) == "chat_template_kwargs");
  CHECK(fixture.encoded.empty());
  for (const Json& messages : {Json::array(), Json("Hi"), Json{{{"content", "Hi"}}},
                               Json{{{"role", "user"}, {"content", 5}}}}) {
    const Answer answer = fixture.ask({{"messages", messages}});
    CHECK(answer.status == 400);
    const std::string param = Json::parse(answer.body)["error"]["param"];
    CHECK(param.starts_with("messages"));
  }
  fixture.result = fail(Errc::PromptTooLong, "the prompt has 300 tokens");
  CHECK(fixture.refused_field({}) == "messages");
}

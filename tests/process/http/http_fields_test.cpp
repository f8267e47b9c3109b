// Fields of other servers' clients over HTTP with real processes: each binds the text, or is
// refused by name.
#include <catch2/catch.hpp>

#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {
namespace {

struct FieldsFixture {
  FieldsFixture() {
    key = http.admit("ann");
    model = http.model(key);
  }
  HttpReply chat(Json more) {
    Json body{{"model", model},
              {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
              {"max_tokens", 60},
              {"seed", 5}};
    body.update(more);
    return http.send(post("/v1/chat/completions", key, body));
  }
  /// The content of a chat that ends by itself.
  std::string content(const Json& more) {
    const HttpReply reply = chat(more);
    CAPTURE(more.dump(), reply.body);
    REQUIRE(reply.status == 200);
    const Json choice = reply.json()["choices"][0];
    CHECK(choice["finish_reason"] == "stop");
    return choice["message"]["content"];
  }
  Json completion(Json more) {
    Json body = http.completion(key, 30, false);
    body.update(more);
    const HttpReply reply = http.send(post("/v1/completions", key, body));
    INFO(reply.body);
    REQUIRE(reply.status == 200);
    return reply.json();
  }

  HttpSystem http{std::vector<std::string>{}};
  std::string key;
  std::string model;
};

}  // namespace

TEST_CASE(
    "http: a choice, an expression, a grammar and a schema bind a text in any server's words") {
  FieldsFixture fixture;
  const Json choices = {"Paris", "London"};
  for (const Json& body :
       {Json{{"guided_choice", choices}}, Json{{"structured_outputs", {{"choice", choices}}}},
        Json{{"guided_regex", "Paris|London"}}, Json{{"regex", "Paris|London"}},
        Json{{"grammar", R"(root ::= "Paris" | "London")"}},
        Json{{"response_format", {{"type", "regex"}, {"value", "Paris|London"}}}}}) {
    const std::string content = fixture.content(body);
    CHECK((content == "Paris" || content == "London"));
  }
  const Json schema = {
      {"type", "object"}, {"properties", {{"a", {{"type", "boolean"}}}}}, {"required", {"a"}}};
  for (const Json& body : {Json{{"guided_json", schema}}, Json{{"json_schema", schema.dump()}},
                           Json{{"response_format", {{"type", "json_object"}, {"schema", schema}}}},
                           Json{{"response_format", {{"type", "json"}, {"value", schema}}}}}) {
    const Json value = Json::parse(fixture.content(body));
    CHECK(value["a"].is_boolean());
  }
}

TEST_CASE("http: a text has min_tokens, and ends with its stop text where that is asked for") {
  FieldsFixture fixture;
  const Json once = fixture.completion({{"stop", {"e"}}});
  REQUIRE(once["choices"][0]["finish_reason"] == "stop");
  const std::string text = once["choices"][0]["text"];
  const Json included = fixture.completion({{"stop", {"e"}}, {"include_stop_str_in_output", true}});
  CHECK(included["choices"][0]["text"] == text + "e");
  const int tokens = once["usage"]["completion_tokens"];
  const Json longer = fixture.completion({{"stop", {"e"}}, {"min_tokens", tokens + 3}});
  CHECK(longer["usage"]["completion_tokens"] > tokens + 2);
  CHECK(longer["choices"][0]["text"].get<std::string>().starts_with(text + "e"));
}

TEST_CASE("http: the last message is continued") {
  FieldsFixture fixture;
  Json body{{"model", fixture.model},
            {"messages",
             {{{"role", "user"}, {"content", "Where?"}},
              {{"role", "assistant"}, {"content", "The capital is"}}}},
            {"continue_final_message", true}};
  const HttpReply tokenized = fixture.http.send(post("/tokenize", fixture.key, body));
  REQUIRE(tokenized.status == 200);
  const Json prompt = tokenized.json();
  const Json read =
      fixture.http.send(post("/detokenize", fixture.key, {{"tokens", prompt["tokens"]}})).json();
  CHECK_THAT(read["prompt"], Catch::EndsWith("The capital is"));
  body.update({{"max_tokens", 12}, {"seed", 5}, {"temperature", 0}});
  const Json chat = fixture.http.send(post("/v1/chat/completions", fixture.key, body)).json();
  const Json plain =
      fixture.completion({{"prompt", prompt["tokens"]}, {"max_tokens", 12}, {"ignore_eos", false}});
  CHECK(chat["choices"][0]["message"]["content"] == plain["choices"][0]["text"]);
}

TEST_CASE("http: a field that is not built is refused by name, and a wrong value by its pointer") {
  FieldsFixture fixture;
  const std::pair<Json, const char*> kRefused[] = {
      {{{"prompt_logprobs", 1}, {"stream", true}}, "prompt_logprobs"},
      {{{"use_beam_search", true}}, "use_beam_search"},
      {{{"top_p", 1.1}}, "top_p"},
      {{{"stop_token_ids", {-1}}}, "stop_token_ids/0"},
      {{{"logit_bias", {{"99999999", 1}}}}, "logit_bias/99999999"},
      // This JSON sorts its members.
      {{{"guided_choice", {"a"}}, {"guided_regex", "a"}}, "guided_regex"}};
  for (const auto& [body, path] : kRefused) {
    const HttpReply reply = fixture.chat(body);
    CAPTURE(body.dump(), reply.body);
    REQUIRE(reply.status == 400);
    CHECK(reply.json()["error"]["param"] == path);
  }
  CHECK(fixture
            .chat({{"seed", -1},
                   {"top_k", -1},
                   {"max_tokens", 4.0},
                   {"stop", std::vector<std::string>(9, "zzz")}})
            .status == 200);
}

}  // namespace leasehold::testing

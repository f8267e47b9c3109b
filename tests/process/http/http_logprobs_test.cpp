// What is read of prompts over HTTP with real processes: log probabilities, as lm-eval and vLLM's
// users ask for them, and embeddings.
#include <catch2/catch.hpp>

#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {
namespace {

struct Scoring : HttpSystem {
  using HttpSystem::HttpSystem;

  std::string key = admit("ann");
  std::string served = model(key);

  Json completion_of(const Json& fields) {
    Json body{{"model", served}, {"temperature", 0}, {"logprobs", 1}, {"echo", true}};
    body.update(fields);
    const HttpReply reply = send(post("/v1/completions", key, body));
    CAPTURE(reply.body);
    REQUIRE(reply.status == 200);
    return reply.json();
  }
  Json tokens_of(const std::string& text) {
    return send(post("/tokenize", key, {{"model", served}, {"prompt", text}})).json()["tokens"];
  }
};

}  // namespace

TEST_CASE("http: the logprobs of a prompt are those of the same tokens when they are drawn") {
  Scoring http;
  const Json drawn = http.completion_of(
      {{"prompt", "Once upon a time"}, {"max_tokens", 30}, {"ignore_eos", true}})["choices"][0];
  const std::string text = drawn["text"];
  CHECK(text.starts_with("Once upon a time"));
  const Json ids = http.tokens_of(text);
  // As lm-eval's local-completions: token ids, several prompts, one token that it leaves out.
  const Json scored = http.completion_of({{"prompt", {ids, ids}}, {"max_tokens", 1}});
  CHECK(scored["usage"]["completion_tokens"] == 2);
  for (const Json& choice : scored["choices"]) {
    const Json& logprobs = choice["logprobs"];
    REQUIRE(logprobs["tokens"].size() == ids.size() + 1);
    CHECK(logprobs["token_logprobs"][0].is_null());
    CHECK(logprobs["top_logprobs"][0].is_null());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      CAPTURE(i);
      CHECK(logprobs["tokens"][i] == drawn["logprobs"]["tokens"][i]);
      CHECK(logprobs["token_logprobs"][i] == drawn["logprobs"]["token_logprobs"][i]);
      CHECK(logprobs["top_logprobs"][i] == drawn["logprobs"]["top_logprobs"][i]);
    }
  }
  // Only the prompt, as one object and as a stream.
  const Json only = http.completion_of({{"prompt", text}, {"max_tokens", 0}});
  CHECK(only["choices"][0]["text"] == text);
  CHECK(only["choices"][0]["finish_reason"] == "length");
  CHECK(only["choices"][0]["logprobs"] == drawn["logprobs"]);
  CHECK(only["usage"]["completion_tokens"] == 0);
  const Json streaming = {{"model", http.served}, {"prompt", text}, {"max_tokens", 0},
                          {"logprobs", 1},        {"echo", true},   {"stream", true}};
  const HttpReply streamed = http.send(post("/v1/completions", http.key, streaming));
  CHECK(text_of(streamed) == text);
  CHECK(Json::parse(streamed.events().at(0))["choices"][0]["logprobs"] == drawn["logprobs"]);
  // vLLM's form.
  const Json vllm = http.completion_of(
      {{"prompt", ids}, {"max_tokens", 1}, {"echo", false}, {"prompt_logprobs", 1}});
  const Json& positions = vllm["choices"][0]["prompt_logprobs"];
  REQUIRE(positions.size() == ids.size());
  CHECK(positions[0].is_null());
  CHECK(positions[9][std::to_string(ids[9].get<int>())]["logprob"] ==
        drawn["logprobs"]["token_logprobs"][9]);
  CHECK(http.system().pool_is_fully_free());
}

TEST_CASE("http: a prompt that is revoked while it is scored has every logprob once") {
  Scoring http({"--slow-motion-us", "60", "--token-budget", "16", "--max-batch-size", "8"});
  std::string text;
  for (int i = 0; i < 15; ++i) text += "Once upon a time there was a dog. ";
  const Json fields = {{"prompt", text}, {"max_tokens", 0}, {"logprobs", 3}};
  const Json expected = http.completion_of(fields)["choices"][0];
  CHECK(expected["logprobs"]["tokens"].size() > 200);

  Json body{{"model", http.served}, {"echo", true}};
  body.update(fields);
  HttpClient client(http.path());
  client.write(post("/v1/completions", http.key, body));
  for (int revoked = 0; revoked < 3; ++revoked) {
    // The key's lease is new after each revocation.
    CHECK(eventually([&] { return http.system().brokerctl({"revoke", "--tenant", "ann"}) == 0; }));
  }
  CHECK(client.reply().json()["choices"][0]["logprobs"] == expected["logprobs"]);
}

TEST_CASE("http: embeddings that are revoked while they are computed have the same bits") {
  Scoring http({"--slow-motion-us", "60", "--token-budget", "16", "--max-batch-size", "8"});
  std::string text;
  for (int i = 0; i < 15; ++i) text += "Once upon a time there was a dog. ";
  const Json body{{"model", http.served},
                  {"input", {text, text + "It ran."}},
                  {"pooling", GENERATE("last", "mean")},
                  {"rid", "e"}};
  const Json expected = http.send(post("/v1/embeddings", http.key, body)).json()["data"];
  REQUIRE(expected.size() == 2);
  // Without the cached prompts of the first answer.
  CHECK(eventually([&] { return http.system().pool_is_fully_free(); }));
  HttpClient client(http.path());
  client.write(post("/v1/embeddings", http.key, body));
  for (int revoked = 0; revoked < 3; ++revoked)
    CHECK(eventually([&] { return http.system().brokerctl({"revoke", "--tenant", "ann"}) == 0; }));
  const HttpReply reply = client.reply();
  CHECK(reply.status == 200);
  CHECK(reply.json()["data"] == expected);

  HttpClient cancelled(http.path());
  cancelled.write(post("/v1/embeddings", http.key, body));
  CHECK(eventually([&] { return http.system().brokerctl({"requests", "cancel", "embd-e"}) == 0; }));
  CHECK(cancelled.reply().status == 499);
}

}  // namespace leasehold::testing

// Completions and chats over HTTP with real processes: the text, and what ends it.
#include <catch2/catch.hpp>

#include "ipc/control/api_key.hpp"
#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {
namespace {

/// Counts the events that have arrived.
auto has_events(std::size_t wanted) {
  return [wanted](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find("data: "); at != std::string::npos;
         at = text.find("data: ", at + 1))
      ++count;
    return count >= wanted;
  };
}

}  // namespace

TEST_CASE("http: a completion is the same text whole and in chunks, with its usage") {
  HttpSystem http;
  http.system().admit("ann");
  const std::string key = http.key_of("ann");
  const HttpReply whole = http.send(post("/v1/completions", key, http.completion(key, 20, false)));
  REQUIRE(whole.status == 200);
  const Json answer = whole.json();
  CHECK(answer["object"] == "text_completion");
  CHECK(answer["choices"][0]["finish_reason"] == "length");
  CHECK(answer["usage"]["completion_tokens"] == 20);
  CHECK(answer["usage"]["prompt_tokens"] > 0);
  const std::string text = answer["choices"][0]["text"];
  CHECK_FALSE(text.empty());

  const HttpReply streamed =
      http.send(post("/v1/completions", key, http.completion(key, 20, true)));
  REQUIRE(streamed.status == 200);
  const auto events = streamed.events();
  CHECK(text_of(streamed) == text);
  CHECK(events.back() == "[DONE]");
  CHECK(Json::parse(events.at(events.size() - 2))["usage"] == answer["usage"]);
  CHECK(Json::parse(events.at(events.size() - 3))["choices"][0]["finish_reason"] == "length");
  CHECK(http.system().pool_is_fully_free());
}

TEST_CASE("http: a chat is answered, and ends at a stop text and with its schema") {
  HttpSystem http(std::vector<std::string>{});
  http.system().admit("ann");
  const std::string key = http.key_of("ann");
  Json body{{"model", http.model(key)},
            {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
            {"max_tokens", 40},
            {"seed", 5}};
  const HttpReply talk = http.send(post("/v1/chat/completions", key, body));
  REQUIRE(talk.status == 200);
  CHECK(talk.json()["choices"][0]["message"]["role"] == "assistant");

  body["response_format"] = {
      {"type", "json_schema"},
      {"json_schema", {{"name", "s"}, {"strict", true}, {"schema", {{"enum", {"yes", "no"}}}}}}};
  const HttpReply chosen = http.send(post("/v1/chat/completions", key, body));
  REQUIRE(chosen.status == 200);
  const Json message = chosen.json()["choices"][0];
  const std::string content = message["message"]["content"];
  CHECK((content == "\"yes\"" || content == "\"no\""));
  CHECK(message["finish_reason"] == "stop");
}

TEST_CASE("http: a prompt beyond the context is refused with OpenAI's code") {
  HttpSystem http(std::vector<std::string>{});
  http.system().admit("ann");
  const std::string key = http.key_of("ann");
  Json body = http.completion(key, 4, true);
  body["prompt"] = std::vector<int>(60'000, 5);
  const HttpReply refused = http.send(post("/v1/completions", key, body));
  CHECK(refused.status == 400);
  CHECK(refused.json()["error"]["code"] == "context_length_exceeded");
}

TEST_CASE("http: a stream goes on with the same text when its lease is revoked") {
  HttpSystem http;
  http.system().admit("ann");
  const std::string key = http.key_of("ann");
  const std::string request = post("/v1/completions", key, http.completion(key, 60, true));
  const std::string undisturbed = text_of(http.send(request));

  HttpClient client(http.path());
  client.write(request);
  REQUIRE(client.read_until(has_events(5)));
  http.system().revoke_mid_request("ann");
  const HttpReply streamed = client.reply();
  CHECK(text_of(streamed) == undisturbed);
  CHECK(streamed.events().back() == "[DONE]");
}

TEST_CASE("http: revoking a key ends its streams with an error, and refuses it") {
  HttpSystem http({"--slow-motion-us", "300"});
  http.system().admit("ann");
  const std::string key = http.key_of("ann");
  HttpClient client(http.path());
  client.write(post("/v1/completions", key, http.completion(key, 200, true)));
  REQUIRE(client.read_until(has_events(3)));
  REQUIRE(http.system().brokerctl({"keys", "revoke", api_key_id(hash_of_api_key(key)).value}) == 0);
  const auto events = client.reply().events();
  REQUIRE(events.size() > 2);
  CHECK(events.back() == "[DONE]");
  CHECK(Json::parse(events.at(events.size() - 2)).contains("error"));
  CHECK(http.send(get("/v1/models", key)).status == 401);
  CHECK(http.system().pool_is_fully_free());
}

TEST_CASE("http: a client that leaves cancels its request") {
  HttpSystem http({"--slow-motion-us", "2000"});
  http.system().admit("ann");
  const std::string key = http.key_of("ann");
  const bool stream = GENERATE(true, false);
  HttpClient client(http.path());
  client.write(post("/v1/completions", key, http.completion(key, 200, stream)));
  if (stream) {
    REQUIRE(client.read_until(has_events(2)));
  } else {
    while (http.system().leases_of("ann").empty()) {
    }
  }
  client.close();
  // The request would run for minutes.
  CHECK(http.system().pool_is_fully_free());
}

TEST_CASE("http: a quota is answered with 429 and Retry-After") {
  HttpSystem http({"--slow-motion-us", "300"});
  http.system().admit("ann", {"--tokens-per-minute", "10"});
  const std::string key = http.key_of("ann");
  const Json body = http.completion(key, 60, false);
  const HttpReply first = http.send(post("/v1/completions", key, body));
  const HttpReply refused = http.send(post("/v1/completions", key, body));
  CHECK(first.status + refused.status > 400);
  CHECK(refused.status == 429);
  CHECK(refused.head.contains("Retry-After: "));
}

}  // namespace leasehold::testing

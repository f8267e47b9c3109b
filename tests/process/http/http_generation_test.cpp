// Completions and chats over HTTP with real processes: the text, and what ends it.
#include <catch2/catch.hpp>

#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {

TEST_CASE("http: a completion is the same text whole and in chunks, with its usage") {
  HttpSystem http;
  const std::string key = http.admit("ann");
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

TEST_CASE("http: usage counts the prompt tokens that the cache held, in every API") {
  HttpSystem http({"--http-idle-ttl-ms", "30000"});  // keeps the lease, which has the cache
  const std::string key = http.admit("ann");
  const std::string prompt = "Once upon a time there was a little girl who had a red ball";
  Json body{{"model", http.model(key)}, {"prompt", prompt}, {"max_tokens", 2}};
  const auto cached = [&](const char* path, const char* details) {
    const HttpReply reply = http.send(post(path, key, body));
    REQUIRE(reply.status == 200);
    return reply.json()["usage"][details]["cached_tokens"].get<int>();
  };
  CHECK(cached("/v1/completions", "prompt_tokens_details") == 0);
  const int again = cached("/v1/completions", "prompt_tokens_details");
  CHECK(again > 0);
  CHECK(again % 16 == 0);  // whole blocks
  // Both choices read the prompt, which counts once.
  body["n"] = 2;
  CHECK(cached("/v1/completions", "prompt_tokens_details") == again);
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const auto events = http.send(post("/v1/completions", key, body)).events();
  const Json usage = Json::parse(events.at(events.size() - 2))["usage"];
  CHECK(usage["prompt_tokens_details"]["cached_tokens"] == again);

  body = {{"model", body["model"]}, {"input", prompt}, {"max_output_tokens", 2}};
  CHECK(cached("/v1/responses", "input_tokens_details") == 0);
  CHECK(cached("/v1/responses", "input_tokens_details") > 0);
  body = {{"model", body["model"]},
          {"messages", {{{"role", "user"}, {"content", prompt}}}},
          {"max_tokens", 2}};
  CHECK(cached("/v1/chat/completions", "prompt_tokens_details") > 0);  // the same prompt
}

TEST_CASE("http: a chat is answered, and ends at a stop text and with its schema") {
  HttpSystem http(std::vector<std::string>{});
  const std::string key = http.admit("ann");
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

TEST_CASE("http: choices of several prompts come together, with what the request echoes") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  Json body = http.completion(key, 6, false);
  const std::string alone =
      http.send(post("/v1/completions", key, body)).json()["choices"][0]["text"];
  body["prompt"] = {"Once upon a time", "The"};
  body["n"] = 2;
  body["echo"] = true;
  const HttpReply whole = http.send(post("/v1/completions", key, body));
  REQUIRE(whole.status == 200);
  const Json answer = whole.json();
  REQUIRE(answer["choices"].size() == 4);
  for (int i = 0; i < 4; ++i) CHECK(answer["choices"][i]["index"] == i);
  CHECK(answer["choices"][0]["text"] == "Once upon a time" + alone);
  CHECK(answer["choices"][1]["text"] == answer["choices"][0]["text"]);  // greedy
  CHECK(answer["choices"][2]["text"].get<std::string>().starts_with("The"));
  CHECK(answer["usage"]["completion_tokens"] == 24);

  body["stream"] = true;
  const HttpReply streamed = http.send(post("/v1/completions", key, body));
  std::vector<std::string> texts(4);
  for (const std::string& event : streamed.events()) {
    const Json json = Json::parse(event, nullptr, false);
    if (!json.is_object() || json["choices"].empty()) continue;
    const Json& choice = json["choices"][0];
    texts.at(choice["index"]) += choice["text"].get<std::string>();
  }
  for (int i = 0; i < 4; ++i) CHECK(answer["choices"][i]["text"] == texts[i]);
  CHECK(Json::parse(streamed.events().end()[-2])["usage"] == answer["usage"]);
}

TEST_CASE("http: choices beyond the quota of concurrent requests wait for the others") {
  HttpSystem http;
  REQUIRE(http.system().brokerctl({"tenants", "admit", "ann", "--max-concurrent", "1"}) == 0);
  const std::string key = http.key_of("ann");
  Json body = http.completion(key, 4, false);
  body["n"] = 3;
  const HttpReply reply = http.send(post("/v1/completions", key, body));
  REQUIRE(reply.status == 200);
  CHECK(reply.json()["usage"]["completion_tokens"] == 12);
}

TEST_CASE("http: choices beyond the quota of blocks wait for the others") {
  HttpSystem http;
  const std::string key =
      http.admit("ann", {"--max-blocks", "102"});  // one extent, so one lease at a time
  Json body = http.completion(key, 4, false);
  body["n"] = 4;
  const HttpReply reply = http.send(post("/v1/completions", key, body));
  REQUIRE(reply.status == 200);
  CHECK(reply.json()["usage"]["completion_tokens"] == 16);
  for (const Json& choice : reply.json()["choices"])
    CHECK(choice["text"] == reply.json()["choices"][0]["text"]);  // greedy
}

TEST_CASE("http: logprobs are those of the tokens of the text") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  Json body = http.completion(key, 8, false);
  body["logprobs"] = 2;
  const Json choice = http.send(post("/v1/completions", key, body)).json()["choices"][0];
  const Json& logprobs = choice["logprobs"];
  REQUIRE(logprobs["tokens"].size() == 8);
  std::string text;
  for (const Json& token : logprobs["tokens"]) text += token.get<std::string>();
  CHECK(text == choice["text"]);
  for (std::size_t i = 0; i < 8; ++i) {
    const Json& top = logprobs["top_logprobs"][i];
    CHECK(top.size() == 2);
    CHECK(top[logprobs["tokens"][i].get<std::string>()] ==
          logprobs["token_logprobs"][i]);  // greedy
  }
  Json talk{{"model", body["model"]},
            {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
            {"max_tokens", 5},
            {"logprobs", true},
            {"top_logprobs", 3}};
  const Json said = http.send(post("/v1/chat/completions", key, talk)).json()["choices"][0];
  CHECK(said["logprobs"]["content"][0]["top_logprobs"].size() == 3);
}

TEST_CASE("http: a text becomes tokens and a text again") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  const Json text{{"prompt", "Once upon a time"}, {"return_token_strs", true}};
  const Json tokens = http.send(post("/tokenize", key, text)).json();
  REQUIRE(tokens["count"] > 1);
  CHECK(tokens["tokens"].size() == tokens["count"]);
  CHECK(tokens["token_strs"].size() == tokens["count"]);
  CHECK(tokens["max_model_len"] > 0);
  const HttpReply back = http.send(post("/detokenize", key, {{"tokens", tokens["tokens"]}}));
  CHECK(back.json()["prompt"] == "Once upon a time");
  Json body = http.completion(key, 4, false);
  const Json by_text = http.send(post("/v1/completions", key, body)).json();
  body["prompt"] = tokens["tokens"];
  CHECK(http.send(post("/v1/completions", key, body)).json()["choices"] == by_text["choices"]);
  for (const Json& wrong : {Json{{"tokens", {1 << 30}}}, Json{{"tokens", "a"}}, Json::array()})
    CHECK(http.send(post("/detokenize", key, wrong)).status == 400);
  CHECK(http.send(post("/tokenize", key, {{"messages", Json::array()}})).status == 400);
  CHECK(http.send(post("/tokenize", "lh-00", text)).status == 401);
}

TEST_CASE("http: the tokens of messages are the prompt of their chat") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  Json chat{{"model", http.model(key)},
            {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
            {"return_token_strs", true}};
  const Json prompt = http.send(post("/tokenize", key, chat)).json();
  REQUIRE(prompt["count"] > 1);
  CHECK(prompt["token_strs"].size() == prompt["count"]);
  chat["add_generation_prompt"] = false;
  const Json shorter = http.send(post("/tokenize", key, chat)).json();
  CHECK(shorter["count"] < prompt["count"]);
  for (std::size_t i = 0; i < shorter["tokens"].size(); ++i)
    CHECK(prompt["tokens"][i] == shorter["tokens"][i]);

  chat.erase("add_generation_prompt");
  for (const auto& [field, value] : {std::pair{"max_tokens", Json(4)}, {"temperature", Json(0)}})
    chat[field] = value;
  const Json said = http.send(post("/v1/chat/completions", key, chat)).json();
  CHECK(said["usage"]["prompt_tokens"] == prompt["count"]);
  const Json body{{"model", chat["model"]},
                  {"prompt", prompt["tokens"]},
                  {"max_tokens", 4},
                  {"temperature", 0}};
  CHECK(http.send(post("/v1/completions", key, body)).json()["choices"][0]["text"] ==
        said["choices"][0]["message"]["content"]);
}

TEST_CASE("http: a prompt beyond the context is refused with OpenAI's code") {
  HttpSystem http(std::vector<std::string>{});
  const std::string key = http.admit("ann");
  Json body = http.completion(key, 4, true);
  body["prompt"] = std::vector<int>(60'000, 5);
  const HttpReply refused = http.send(post("/v1/completions", key, body));
  CHECK(refused.status == 400);
  CHECK(refused.json()["error"]["code"] == "context_length_exceeded");
}

TEST_CASE("http: a stream goes on with the same text when its lease is revoked") {
  HttpSystem http;
  const std::string key = http.admit("ann");
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
  const std::string key = http.admit("ann");
  HttpClient client(http.path());
  client.write(post("/v1/completions", key, http.completion(key, 200, true)));
  REQUIRE(client.read_until(has_events(3)));
  REQUIRE(http.revoke(key) == 0);
  const auto events = client.reply().events();
  REQUIRE(events.size() > 2);
  CHECK(events.back() == "[DONE]");
  CHECK(Json::parse(events.at(events.size() - 2)).contains("error"));
  CHECK(http.send(get("/v1/models", key)).status == 401);
  CHECK(http.system().pool_is_fully_free());
}

TEST_CASE("http: revoking a key ends the stream of a response with the event of a failure") {
  HttpSystem http({"--slow-motion-us", "300"});
  const std::string key = http.admit("ann");
  const Json body{
      {"model", http.model(key)}, {"input", "Hi"}, {"ignore_eos", true}, {"stream", true}};
  HttpClient client(http.path());
  client.write(post("/v1/responses", key, body));
  REQUIRE(client.read_until(has_events(8)));
  REQUIRE(http.revoke(key) == 0);
  const std::string stream = client.reply().body;
  const auto last = stream.rfind("event: ");
  REQUIRE(last != std::string::npos);
  CHECK(stream.substr(last).starts_with("event: response.failed\ndata: "));
  const auto data = stream.find("data: ", last) + 6;
  const Json response = Json::parse(stream.substr(data))["response"];
  CHECK(response["error"]["code"] == "invalid_api_key");
  CHECK_FALSE(response["output"][0]["content"][0]["text"].get<std::string>().empty());
  CHECK(http.system().pool_is_fully_free());
}

TEST_CASE("http: a client that leaves cancels its request") {
  const auto transport = GENERATE(HttpSystem::Transport::Unix, HttpSystem::Transport::Tcp);
  HttpSystem http({"--slow-motion-us", "2000"}, transport);
  const std::string key = http.admit("ann");
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
  const std::string key = http.admit("ann", {"--tokens-per-minute", "100"});
  const Json body = http.completion(key, 60, false);
  CHECK(http.send(post("/v1/completions", key, body)).status == 200);
  const HttpReply refused = http.send(post("/v1/completions", key, body));
  CHECK(refused.status == 429);
  CHECK(refused.json()["error"]["code"] == "QuotaTokens");
  CHECK(refused.head.contains("Retry-After: "));
}

TEST_CASE("http: what a quota can never hold is answered with 400, without Retry-After") {
  HttpSystem http;
  const std::string key = http.admit("ann", {"--max-blocks", "16", "--tokens-per-minute", "1000"});
  for (const int tokens : {400, 4'000}) {  // beyond the blocks; beyond the tokens, too
    const HttpReply refused =
        http.send(post("/v1/completions", key, http.completion(key, tokens, false)));
    CHECK(refused.status == 400);
    CHECK_FALSE(refused.head.contains("Retry-After"));
  }
  const std::string other = http.admit("bob", {"--tokens-per-minute", "100"});
  const HttpReply refused =
      http.send(post("/v1/completions", other, http.completion(other, 200, false)));
  CHECK(refused.status == 400);
  CHECK_FALSE(refused.head.contains("Retry-After"));
}

TEST_CASE("http: a chat without max_tokens fits the tenant's quota, alone and in choices") {
  HttpSystem http({"--slow-motion-us", "1"});
  http.system().admit("ann", {"--max-blocks", "16"});
  http.system().admit("bob", {"--tokens-per-minute", "60"});
  for (const char* tenant : {"ann", "bob"}) {
    const std::string key = http.key_of(tenant);
    Json body{{"model", http.model(key)},
              {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
              {"ignore_eos", true}};
    const HttpReply alone = http.send(post("/v1/chat/completions", key, body));
    REQUIRE(alone.status == 200);
    CHECK(alone.json()["choices"][0]["finish_reason"] == "length");
    CHECK(alone.json()["usage"]["completion_tokens"] > 10);
    CHECK(alone.json()["usage"]["total_tokens"] <= 256);
  }
  const std::string key = http.key_of("ann");
  const Json several{
      {"model", http.model(key)}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"n", 3}};
  CHECK(http.send(post("/v1/chat/completions", key, several)).status == 200);
  const Json response{{"model", http.model(key)}, {"input", "Hi"}};
  const HttpReply answered = http.send(post("/v1/responses", key, response));
  INFO(answered.body);
  CHECK(answered.status == 200);
}

}  // namespace leasehold::testing

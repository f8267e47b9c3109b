// Anthropic's API with real processes: stop sequences, counts, revocations.
#include <catch2/catch.hpp>

#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {
namespace {

Json message(HttpSystem& http, const std::string& key, int max_tokens, bool stream) {
  return {{"model", http.model(key)},
          {"max_tokens", max_tokens},
          {"messages", {{{"role", "user"}, {"content", "Once upon a time"}}}},
          {"temperature", 0},
          {"ignore_eos", true},
          {"stream", stream}};
}

/// The text of the events of a stream.
std::string streamed_text(const HttpReply& streamed) {
  std::string text;
  for (const std::string& event : streamed.events())
    if (const Json json = Json::parse(event); json.contains("delta"))
      text += json["delta"].value("text", "");
  return text;
}

}  // namespace

TEST_CASE("http messages: a text is the same whole, streamed and revoked, or has a typed end") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  const Json whole = http.send(post("/v1/messages", key, message(http, key, 60, false))).json();
  const std::string text = whole["content"][0]["text"];
  CHECK(whole["stop_reason"] == "max_tokens");
  CHECK(whole["usage"]["output_tokens"] == 60);

  HttpClient client(http.path());
  client.write(post("/v1/messages", key, message(http, key, 60, true)));
  REQUIRE(client.read_until(has_events(5)));
  http.system().revoke_mid_request("ann");
  const HttpReply streamed = client.reply();
  CHECK(streamed_text(streamed) == text);
  CHECK(Json::parse(streamed.events().back())["type"] == "message_stop");

  const std::string stop = text.substr(text.size() / 2, 3);
  Json asked = message(http, key, 60, false);
  asked["stop_sequences"] = {"never", stop, stop + text.substr(text.size() / 2 + 3, 4)};
  const Json stopped = http.send(post("/v1/messages", key, asked)).json();
  CHECK(stopped["stop_reason"] == "stop_sequence");
  CHECK(stopped["stop_sequence"] == stop);
  CHECK(stopped["content"][0]["text"] == text.substr(0, text.find(stop)));

  asked.erase("max_tokens");
  const HttpReply counted = http.send(post("/v1/messages/count_tokens", key, asked));
  const Json& usage = whole["usage"];
  CHECK(counted.json()["input_tokens"] ==
        usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>());

  HttpClient ended(http.path());
  ended.write(post("/v1/messages", key, message(http, key, 2000, true)));
  REQUIRE(ended.read_until(has_events(5)));
  REQUIRE(http.revoke(key) == 0);
  const Json last = Json::parse(ended.reply().events().back());
  CHECK(last["type"] == "error");
  CHECK(last["error"]["type"] == "authentication_error");
  CHECK(http.system().pool_is_fully_free());
}

}  // namespace leasehold::testing

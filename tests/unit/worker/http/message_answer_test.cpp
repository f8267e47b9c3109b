// The answers, streams and errors of Anthropic's API.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/http/api/messages_answer.hpp"

namespace leasehold::http::message_answer_test {
namespace {

using Json = nlohmann::json;

ApiRequest request_of(bool stream) {
  ApiRequest request{.api = Api::Messages, .stream = stream};
  request.submit.request_id = {"req-1"};
  return request;
}

/// Thoughts, a text in two pieces, a call and a text.
std::vector<ChoicePart> said() {
  std::vector<ChoicePart> parts{{.reasoning = "Hm"}, {.text = "On"}, {.text = "ce"}, {}, {}};
  parts[3].calls.push_back({.id = "call_1", .call = {"add", R"({"x":[1]})"}});
  parts[4] = {.text = "!", .finish_reason = "tool_calls"};
  return parts;
}

struct Written {
  std::vector<Json> events;
  Json whole;
};

Written written(const ApiRequest& request, const std::vector<ChoicePart>& parts) {
  const auto writer = answer_writer(request, "tiny", 5);
  UsageCount usage{.prompt_tokens = 3};
  ServerEvents sent;
  const auto send = [&](ServerEvents events) {
    std::ranges::move(events, std::back_inserter(sent));
  };
  for (const ChoicePart& part : parts) {
    ++usage.completion_tokens;
    send(writer->add(part, usage));
  }
  send(writer->end(usage));
  Written made;
  for (const ServerEvent& event : sent) {
    made.events.push_back(Json::parse(event.data));
    CHECK(made.events.back()["type"] == event.name);
  }
  if (!request.stream) made.whole = Json::parse(writer->whole(usage));
  return made;
}

/// The message that a client makes of the events.
Json assembled(const std::vector<Json>& events) {
  Json message;
  std::string input;
  for (const Json& event : events) {
    const std::string type = event["type"];
    if (type == "message_start") message = event["message"];
    if (type == "content_block_start") message["content"].push_back(event["content_block"]);
    if (type == "content_block_delta") {
      CHECK(event["index"] == message["content"].size() - 1);
      Json& block = message["content"].back();
      const Json& delta = event["delta"];
      for (const char* text : {"text", "thinking"})
        if (delta.contains(text))
          block[text] = block[text].get<std::string>() + delta[text].get<std::string>();
      if (delta.contains("partial_json"))
        block["input"] = Json::parse(delta["partial_json"].get<std::string>());
    }
    if (type != "message_delta") continue;
    message.update(event["delta"]);
    message["usage"] = event["usage"];
  }
  return message;
}

/// The stop reason and the stop sequence of an answer of one token.
Json stop_of(ChoicePart last, std::uint32_t max_tokens = 1) {
  ApiRequest request = request_of(false);
  request.submit.max_emitted_tokens = max_tokens;
  const Json json = written(request, {std::move(last)}).whole;
  return {json["stop_reason"], json["stop_sequence"]};
}

}  // namespace

TEST_CASE("http message: an answer has thoughts, texts and calls as blocks") {
  const Json json = written(request_of(false), said()).whole;
  CHECK(json["id"] == "msg_req-1");
  CHECK(json["type"] == "message");
  CHECK(json["role"] == "assistant");
  CHECK(json["model"] == "tiny");
  CHECK(json["stop_reason"] == "tool_use");
  CHECK(json["stop_sequence"].is_null());
  CHECK(json["content"] ==
        Json{{{"type", "thinking"}, {"thinking", "Hm"}, {"signature", ""}},
             {{"type", "text"}, {"text", "Once"}},
             {{"type", "tool_use"}, {"id", "call_1"}, {"name", "add"}, {"input", {{"x", {1}}}}},
             {{"type", "text"}, {"text", "!"}}});
  CHECK(json["usage"]["input_tokens"] == 3);
  CHECK(json["usage"]["output_tokens"] == 5);
  CHECK(json["usage"]["output_tokens_details"]["thinking_tokens"] == 1);
}

TEST_CASE("http message: the events of a stream make the same answer") {
  const Written streamed = written(request_of(true), said());
  CHECK(assembled(streamed.events) == written(request_of(false), said()).whole);
  std::vector<std::string> types;
  for (const Json& event : streamed.events) types.push_back(event["type"]);
  CHECK(types == std::vector<std::string>{
                     "message_start", "content_block_start", "content_block_delta",
                     "content_block_stop", "content_block_start", "content_block_delta",
                     "content_block_delta", "content_block_stop", "content_block_start",
                     "content_block_delta", "content_block_stop", "content_block_start",
                     "content_block_delta", "content_block_stop", "message_delta", "message_stop"});
  CHECK(streamed.events[0]["message"]["content"] == Json::array());
  CHECK(streamed.events[0]["message"]["usage"]["input_tokens"] == 3);
  CHECK(streamed.events[2]["delta"]["type"] == "thinking_delta");
  CHECK(streamed.events[5]["delta"]["type"] == "text_delta");
  CHECK(streamed.events[9]["delta"]["type"] == "input_json_delta");
}

TEST_CASE("http message: thoughts whose display is omitted have no text") {
  ApiRequest request = request_of(GENERATE(true, false));
  request.omits_thinking = true;
  const Written answer = written(request, said());
  const Json message = request.stream ? assembled(answer.events) : answer.whole;
  CHECK(message["content"][0] == Json{{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
  CHECK(message["content"][1]["text"] == "Once");
}

TEST_CASE("http message: the stop reason says why the text ended") {
  CHECK(stop_of({.text = "a", .finish_reason = "stop"}) == Json{"end_turn", nullptr});
  CHECK(stop_of({.text = "a", .finish_reason = "length"}) == Json{"max_tokens", nullptr});
  CHECK(stop_of({.text = "a", .finish_reason = "length"}, 2) ==
        Json{"model_context_window_exceeded", nullptr});
  CHECK(stop_of({.text = "a", .finish_reason = "stop", .stop = "X"}) == Json{"stop_sequence", "X"});
  const Json empty = written(request_of(false), {{.finish_reason = "stop"}}).whole;
  CHECK(empty["content"] == Json{{{"type", "text"}, {"text", ""}}});
}

TEST_CASE("http message: a stream that fails ends with its error, and a silent one pings") {
  const auto writer = answer_writer(request_of(true), "tiny", 5);
  (void)writer->add({.text = "On"}, {});
  const ServerEvents ping = writer->beat();
  REQUIRE(ping.size() == 1);
  CHECK(ping[0].name == "ping");
  const ServerEvents events = writer->failed({Errc::LeaseRevoked, "the key was revoked"});
  REQUIRE(events.size() == 1);
  CHECK(events[0].name == "error");
  const Json last = Json::parse(events[0].data);
  CHECK(last["type"] == "error");
  CHECK(last["error"]["type"] == "overloaded_error");
  CHECK(last["error"]["message"] == "the key was revoked");
  CHECK(last["error"]["details"]["error_code"] == "LeaseRevoked");
}

}  // namespace leasehold::http::message_answer_test

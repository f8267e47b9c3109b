// Answers of completions and chats have OpenAI's shapes, whole and in chunks.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/http/api/api_answer.hpp"

using namespace leasehold;
using namespace leasehold::http;
using Json = nlohmann::json;

namespace {

ApiRequest request_of(Api api, std::uint32_t n = 1) {
  ApiRequest request{.api = api, .n = n};
  request.submit.request_id = {"req-1"};
  return request;
}

Json whole(const ApiRequest& request, const std::vector<ChoicePart>& parts, UsageCount usage = {}) {
  const auto writer = answer_writer(request, "tiny", 5);
  for (const ChoicePart& part : parts) CHECK(writer->add(part, usage).empty());
  CHECK(writer->end(usage).empty());
  return Json::parse(writer->whole(usage));
}

/// The chunks of a stream with one part, without "[DONE]".
std::vector<Json> chunks(ApiRequest request, const ChoicePart& part, UsageCount usage = {}) {
  request.stream = true;
  const auto writer = answer_writer(request, "tiny", 5);
  ServerEvents events = writer->add(part, usage);
  for (const ServerEvent& event : writer->end(usage)) events.push_back(event);
  REQUIRE(events.back().data == "[DONE]");
  events.pop_back();
  std::vector<Json> all;
  for (const ServerEvent& event : events) {
    CHECK(event.name.empty());
    all.push_back(Json::parse(event.data));
  }
  return all;
}

/// The chunk of a part that does not end its choice, as the JSON library writes it: chunks with an
/// end are written by it.
std::string chunk_of_library(AnswerWriter& writer, ChoicePart part, UsageCount so_far) {
  part.finish_reason = "stop";
  const ServerEvents events = writer.add(std::move(part), so_far);
  REQUIRE(events.size() == 1);
  Json chunk = Json::parse(events[0].data);
  Json& reason = chunk.at("choices").at(0).at("finish_reason");
  CHECK(reason == "stop");
  reason = nullptr;
  return line_of(chunk);
}

}  // namespace

TEST_CASE("http answer: no text of an answer or a chunk has characters that a terminal obeys") {
  const std::string text = "a\x7F\u0080\u009B\u202Eb\u2067\u00A0\u2014";
  for (const Api api : {Api::Completions, Api::Chat, Api::Responses}) {
    for (const bool stream : {false, true}) {
      ApiRequest request = request_of(api);
      request.stream = stream;
      const auto writer = answer_writer(request, "tiny", 5);
      std::string all;
      for (const auto& part : {ChoicePart{.text = text, .reasoning = text},
                               ChoicePart{.text = text, .finish_reason = "stop"}})
        for (const ServerEvent& event : writer->add(part, {})) all += event.data;
      for (const ServerEvent& event : writer->end({})) all += event.data;
      if (!stream) all = writer->whole({});
      CHECK(all.contains("a\\u007f\\u0080\\u009b\\u202eb\\u2067\u00A0\u2014"));
      for (const char* raw : {"\x7F", "\u0080", "\u009B", "\u202E", "\u2067"})
        CHECK_FALSE(all.contains(raw));
    }
  }
}

TEST_CASE("http answer: logprobs have OpenAI's shapes") {
  ChoicePart part{.text = "ab", .finish_reason = "stop"};
  part.logprobs.push_back({.token = {"a", -0.5f}, .top = {{"a", -0.5f}, {"\xC3", -2.0f}}});
  part.logprobs.push_back({.token = {"b", -1.0f}, .top = {}, .text_offset = 1});
  ApiRequest talk = request_of(Api::Chat);
  talk.submit.sampling.logprobs = true;
  const Json content = whole(talk, {part})["choices"][0]["logprobs"]["content"];
  REQUIRE(content.size() == 2);
  CHECK(content[0]["token"] == "a");
  CHECK(content[0]["bytes"] == Json{97});
  CHECK(content[0]["top_logprobs"][1]["bytes"] == Json{0xC3});
  CHECK(content[1]["logprob"] == -1.0);
  CHECK(chunks(talk, part).at(1)["choices"][0]["logprobs"]["content"] == content);

  ApiRequest completion = request_of(Api::Completions);
  completion.submit.sampling.logprobs = true;
  const Json logprobs = whole(completion, {part})["choices"][0]["logprobs"];
  CHECK(logprobs["tokens"] == Json{"a", "b"});
  CHECK(logprobs["text_offset"] == Json{0, 1});
  CHECK(logprobs["top_logprobs"][0]["a"] == -0.5);
  CHECK(logprobs["top_logprobs"][0].size() == 2);

  CHECK(whole(request_of(Api::Chat), {part})["choices"][0]["logprobs"].is_null());
}

TEST_CASE("http answer: log probabilities of a prompt have OpenAI's and vLLM's shapes") {
  ChoicePart part{.text = "ab", .finish_reason = "length"};
  part.logprobs.push_back({.token = {"a"}, .top = {}, .is_first = true});
  part.logprobs.push_back({.token = {"b", -1.0f}, .top = {{"b", -1.0f}}, .text_offset = 1});
  ApiRequest request = request_of(Api::Completions);
  request.submit.sampling.logprobs = true;
  const Json echo = whole(request, {part})["choices"][0];
  CHECK(echo["logprobs"]["tokens"] == Json{"a", "b"});
  CHECK(echo["logprobs"]["token_logprobs"] == Json{nullptr, -1.0});
  CHECK(echo["logprobs"]["top_logprobs"] == Json{nullptr, {{"b", -1.0}}});
  CHECK_FALSE(echo.contains("prompt_logprobs"));

  part.prompt_logprobs = {{}, {{7, {"b", -1.0f}, 0}, {9, {"c", -0.5f}, 1}}};
  request.prompt_logprobs = true;
  const Json second = {{"7", {{"logprob", -1.0}, {"rank", nullptr}, {"decoded_token", "b"}}},
                       {"9", {{"logprob", -0.5}, {"rank", 1}, {"decoded_token", "c"}}}};
  CHECK(whole(request, {part})["choices"][0]["prompt_logprobs"] == Json{nullptr, second});
  ApiRequest talk = request_of(Api::Chat);
  talk.prompt_logprobs = true;
  CHECK(whole(talk, {part})["prompt_logprobs"] == Json{nullptr, second});
}

TEST_CASE("http answer: chunks of a chat begin with the role and end with the reason") {
  const ApiRequest request = request_of(Api::Chat, 3);
  const auto texts = chunks(request, {.index = 2, .text = "a"}, {3, 1});
  REQUIRE(texts.size() == 2);
  CHECK(texts[0]["object"] == "chat.completion.chunk");
  CHECK(texts[0]["choices"][0]["delta"]["role"] == "assistant");
  CHECK(texts[0]["choices"][0]["index"] == 2);
  CHECK(texts[1]["choices"][0]["index"] == 2);
  CHECK(texts[1]["choices"][0]["delta"]["content"] == "a");
  CHECK(texts[1]["choices"][0]["finish_reason"].is_null());
  CHECK_FALSE(texts[1].contains("usage"));
  const auto ends = chunks(request, {.finish_reason = finish_reason("MaxTokensReached")});
  CHECK(finish_reason("ContextFull") == "length");
  REQUIRE(ends.size() == 2);
  CHECK(ends[1]["choices"][0]["finish_reason"] == "length");
  CHECK(ends[1]["choices"][0]["delta"].empty());
  CHECK(chunks(request, {}).size() == 1);  // nothing but the role
}

TEST_CASE("http answer: the chunk of a token has the bytes of the JSON library") {
  const std::string text = GENERATE(as<std::string>(), "", " word", "a\"b", "C:\\", "1\n2", "\x7F",
                                    std::string("\0\x1F", 2), "h\xC3\xA9", "\xC3", "~ !");
  const bool is_thought = GENERATE(true, false);
  ApiRequest request = request_of(GENERATE(Api::Completions, Api::Chat), 12);
  request.stream = true;
  request.continuous_usage = GENERATE(true, false);
  const auto writer = answer_writer(request, "a \"tiny\" model", 5);
  (void)writer->add({.index = 11, .text = "x"}, {});
  ChoicePart part{.index = 11, .text = text};
  if (is_thought && request.api == Api::Chat) part.reasoning = "Hm\t" + text;
  CAPTURE(text, is_thought, request.api == Api::Chat, request.continuous_usage);
  for (const ServerEvent& event : writer->add(part, {3, 4})) {
    CHECK(event.data == chunk_of_library(*writer, part, {3, 4}));
    const Json chunk = Json::parse(event.data);
    const Json& choice = chunk["choices"][0];
    const Json said = request.api == Api::Chat ? choice["delta"] : choice;
    const char* const key = request.api == Api::Chat ? "content" : "text";
    CHECK(line_of(said.value(key, Json(""))) == line_of(Json(text)));
    CHECK(said.value("reasoning_content", std::string()).starts_with("Hm\t") ==
          !part.reasoning.empty());
    CHECK(choice["index"] == 11);
    CHECK(chunk["model"] == "a \"tiny\" model");
    CHECK(chunk.contains("usage") == request.continuous_usage);
  }
}

TEST_CASE("http answer: with the usage at the end the other chunks say that they have none") {
  ApiRequest request = request_of(GENERATE(Api::Chat, Api::Completions));
  request.include_usage = true;
  for (const char* reason : {"", "stop"}) {
    const auto all = chunks(request, {.text = "a", .finish_reason = reason}, {.prompt_tokens = 3});
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      REQUIRE(all[i].contains("usage"));
      CHECK(all[i]["usage"].is_null());
    }
    CHECK(all.back()["usage"]["prompt_tokens"] == 3);
  }
}

TEST_CASE("http answer: usage is in the last chunk, and in every chunk where it is asked for") {
  ApiRequest request = request_of(Api::Completions, 2);
  request.include_usage = request.continuous_usage = true;
  const UsageCount usage{.prompt_tokens = 3, .completion_tokens = 4, .cached_tokens = 2};
  const auto all = chunks(request, {.text = "a"}, usage);
  REQUIRE(all.size() == 2);
  CHECK(all[0]["usage"]["completion_tokens"] == 4);
  CHECK(all[1]["choices"].empty());
  CHECK(all[1]["usage"]["total_tokens"] == 7);
  CHECK(all[1]["usage"]["prompt_tokens_details"]["cached_tokens"] == 2);
  const Json json = whole(
      request, {{.text = "te"}, {.index = 1}, {.text = "xt", .finish_reason = "stop"}}, usage);
  CHECK(json["choices"][1]["index"] == 1);
  CHECK(json["choices"][0]["text"] == "text");
  CHECK(json["usage"]["prompt_tokens"] == 3);
}

TEST_CASE("http answer: calls of tools and thoughts have OpenAI's shapes") {
  ChoicePart part{.reasoning = "Hm", .finish_reason = "tool_calls"};
  part.calls.push_back({.index = 0, .id = "call_1", .call = {"add", R"({"x":1})"}});
  const Json choice = whole(request_of(Api::Chat), {part})["choices"][0];
  CHECK(choice["finish_reason"] == "tool_calls");
  CHECK(choice["message"]["content"].is_null());
  CHECK(choice["message"]["reasoning_content"] == "Hm");
  const Json call = choice["message"]["tool_calls"][0];
  CHECK(call["id"] == "call_1");
  CHECK(call["type"] == "function");
  CHECK(call["function"]["arguments"] == R"({"x":1})");
  CHECK_FALSE(call.contains("index"));
  const Json delta = chunks(request_of(Api::Chat), part).at(1)["choices"][0]["delta"];
  CHECK(delta["tool_calls"][0]["index"] == 0);
  CHECK(delta["reasoning_content"] == "Hm");
}

TEST_CASE("http answer: a stream that fails ends with the error and [DONE]") {
  ApiRequest request = request_of(Api::Chat);
  request.stream = true;
  const auto events =
      answer_writer(request, "tiny", 5)->failed({Errc::LeaseRevoked, "the key was revoked"});
  REQUIRE(events.size() == 2);
  CHECK(Json::parse(events[0].data)["error"]["message"] == "the key was revoked");
  CHECK(events[1].data == "[DONE]");
}

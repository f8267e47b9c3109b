// A response is a chat in other words: what its body becomes, and what its answer looks like.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/http/api/api_answer.hpp"

using namespace leasehold;
using namespace leasehold::http;
using Json = nlohmann::json;

namespace {

const ApiModel kToolModel{.name = "tiny", .max_context = 256};

std::expected<ApiRequest, ApiError> parse(Json body) {
  body["model"] = "tiny";
  if (!body.contains("input")) body["input"] = "Hi";
  return parse_api_request(Api::Responses, body.dump(), kToolModel);
}

ApiRequest read(const Json& body) {
  const auto request = parse(body);
  if (!request) FAIL(request.error().param << ": " << request.error().error.detail);
  return *request;
}

std::vector<wire::ChatMessage> messages(const Json& input) {
  return *read({{"input", input}}).submit.messages;
}

/// The field that is refused.
std::string refused(const Json& body) {
  const auto request = parse(body);
  REQUIRE_FALSE(request.has_value());
  CHECK(request.error().error.code == Errc::BadRequest);
  return request.error().param;
}

const Json kTool = {{"type", "function"},
                    {"name", "add"},
                    {"description", "Adds."},
                    {"strict", true},
                    {"parameters", {{"type", "object"}}}};

ApiRequest request_of(bool stream, const Json& body = Json::object()) {
  ApiRequest request = read(body);
  request.submit.request_id = {"req-1"};
  request.stream = stream;
  return request;
}

/// Thoughts, a text in two pieces and a call.
std::vector<ChoicePart> said() {
  std::vector<ChoicePart> parts{
      {.reasoning = "Hm"}, {.text = "On"}, {.text = "ce"}, {.finish_reason = "tool_calls"}};
  parts.back().calls.push_back({.id = "call_1", .call = {"add", R"({"x":1})"}});
  return parts;
}

struct Written {
  std::vector<Json> events;
  Json whole;
};

Written written(const ApiRequest& request, const std::vector<ChoicePart>& parts) {
  const auto writer = answer_writer(request, "tiny", 5);
  UsageCount usage{.prompt_tokens = 3, .cached_tokens = 2};
  ServerEvents sent;
  const auto send = [&](const ServerEvents& events) {
    sent.insert(sent.end(), events.begin(), events.end());
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
    CHECK(made.events.back()["sequence_number"] == made.events.size() - 1);
  }
  if (!request.stream) made.whole = Json::parse(writer->whole(usage));
  return made;
}

std::vector<std::string> types(const Written& answer) {
  std::vector<std::string> all;
  for (const Json& event : answer.events) all.push_back(event["type"]);
  return all;
}

}  // namespace

TEST_CASE("http response: a text and instructions become the messages of a chat") {
  const ApiRequest request = read({{"input", "Hi"},
                                   {"instructions", "Be kind."},
                                   {"max_output_tokens", 7},
                                   {"temperature", 0},
                                   {"top_p", 0.5},
                                   {"seed", 9},
                                   {"stream", true},
                                   {"store", false},
                                   {"ignore_eos", true},
                                   {"truncation", "disabled"}});
  CHECK(request.api == Api::Responses);
  REQUIRE(request.submit.messages->size() == 2);
  CHECK(request.submit.messages->at(0).role == "system");
  CHECK(request.submit.messages->at(0).content == "Be kind.");
  CHECK(request.submit.messages->at(1).role == "user");
  CHECK(request.submit.messages->at(1).content == "Hi");
  CHECK(request.submit.max_emitted_tokens == 7);
  CHECK(request.submit.sampling.temperature == 0.0f);
  CHECK(request.submit.sampling.top_p == 0.5f);
  CHECK(request.submit.sampling.seed == 9);
  CHECK(request.submit.ignore_eos);
  CHECK(request.stream);
  CHECK(read({}).submit.max_emitted_tokens == kToolModel.max_context);
}

TEST_CASE("http response: the items of an earlier answer become one message of the assistant") {
  const Json said_before = {
      {{"type", "message"}, {"role", "developer"}, {"content", "Be kind."}},
      {{"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "1+1?"}}}}},
      {{"type", "reasoning"},
       {"id", "rs_1"},
       {"summary", Json::array()},
       {"content", {{{"type", "reasoning_text"}, {"text", "Hm"}}}}},
      {{"type", "message"},
       {"role", "assistant"},
       {"id", "msg_1"},
       {"status", "completed"},
       {"content",
        {{{"type", "output_text"}, {"text", "I add."}, {"annotations", Json::array()}}}}},
      {{"type", "function_call"}, {"call_id", "c1"}, {"name", "add"}, {"arguments", "{}"}},
      {{"type", "function_call"}, {"call_id", "c2"}, {"name", "add"}, {"arguments", "{}"}},
      {{"type", "function_call_output"}, {"call_id", "c1"}, {"output", "2"}},
      {{"type", "function_call_output"},
       {"call_id", "c2"},
       {"output", {{{"type", "input_text"}, {"text", "3"}}}}},
      {{"role", "assistant"}, {"content", "2 and 3"}},
      {{"type", "reasoning"}, {"summary", {{{"type", "summary_text"}, {"text", "Bye?"}}}}}};
  const auto all = messages(said_before);
  REQUIRE(all.size() == 7);
  CHECK(all[0].role == "developer");
  CHECK(all[1].content == "1+1?");
  CHECK(all[2].role == "assistant");
  CHECK(all[2].reasoning_content == "Hm");
  CHECK(all[2].content == "I add.");
  const Json calls = Json::parse(all[2].tool_calls);
  REQUIRE(calls.size() == 2);
  CHECK(calls[0]["id"] == "c1");
  CHECK(calls[1]["function"]["name"] == "add");
  CHECK(all[3].role == "tool");
  CHECK(all[3].tool_call_id == "c1");
  CHECK(all[4].content == "3");
  CHECK(all[5].content == "2 and 3");
  CHECK(all[5].reasoning_content.empty());
  CHECK(all[6].reasoning_content == "Bye?");
  CHECK(all[6].content == "");
}

TEST_CASE("http response: tools, formats and logprobs are those of a chat") {
  const ApiRequest free = read({{"tools", {kTool}}});
  CHECK(free.tool_form == ToolForm::Marked);
  const Json shown = Json::parse(free.submit.tools)[0];
  CHECK(shown["function"] ==
        Json{{"name", "add"}, {"description", "Adds."}, {"parameters", {{"type", "object"}}}});
  const ApiRequest named =
      read({{"tools", {kTool}}, {"tool_choice", {{"type", "function"}, {"name", "add"}}}});
  CHECK(named.tool_form == ToolForm::Arguments);
  CHECK(named.tool_name == "add");
  CHECK(read({{"tools", {kTool}}, {"tool_choice", "required"}}).tool_form == ToolForm::Call);
  CHECK(read({{"tools", {kTool}}, {"tool_choice", "none"}}).submit.tools.empty());

  const Json schema = {{"type", "object"}};
  const ApiRequest bound =
      read({{"text",
             {{"verbosity", "low"},
              {"format",
               {{"type", "json_schema"}, {"name", "s"}, {"strict", true}, {"schema", schema}}}}}});
  const wire::ResponseFormat& format = bound.submit.sampling.response_format;
  CHECK(format.type == "json_schema");
  CHECK(format.strict);
  CHECK(Json::parse(format.schema) == schema);
  CHECK(read({{"text", {{"format", {{"type", "json_object"}}}}}})
            .submit.sampling.response_format.type == "json_object");

  CHECK_FALSE(read({{"include", {"reasoning.encrypted_content"}}}).submit.sampling.logprobs);
  CHECK(read({{"include", {"message.output_text.logprobs"}}}).submit.sampling.logprobs);
  CHECK(read({{"top_logprobs", 3}}).submit.sampling.top_logprobs == 3);
}

TEST_CASE("http response: what needs stored responses or hosted tools is refused with its field") {
  CHECK(refused({{"store", true}}) == "store");
  CHECK(refused({{"store", 1}}) == "store");
  CHECK(refused({{"background", true}}) == "background");
  CHECK(refused({{"resumable", true}}) == "resumable");
  CHECK(refused({{"truncation", "auto"}}) == "truncation");
  CHECK(refused({{"n", 2}}) == "n");
  CHECK(refused({{"echo", true}}) == "echo");
  CHECK(refused({{"logprobs", true}}) == "logprobs");
  CHECK(refused({{"prompt_logprobs", 0}}) == "prompt_logprobs");
  CHECK(refused({{"previous_response_id", "resp_1"}}) == "previous_response_id");
  CHECK(refused({{"conversation", "conv_1"}}) == "conversation");
  CHECK(refused({{"prompt", {{"id", "p"}}}}) == "prompt");
  CHECK(refused({{"metadata", 1}}) == "metadata");
  CHECK(refused({{"instructions", {"a"}}}) == "instructions");
  CHECK(refused({{"include", "all"}}) == "include");
  CHECK(refused({{"tools", {{{"type", "web_search"}}}}}) == "tools/0/type");
  CHECK(refused({{"tools", {{{"type", "function"}, {"name", 5}}}}}) == "tools/0/name");
  CHECK(refused({{"tools", "all"}}) == "tools");
  CHECK(refused({{"tools", {kTool}}, {"tool_choice", {{"type", "function"}, {"name", "sub"}}}}) ==
        "tool_choice");
  CHECK(refused({{"tool_choice", {{"type", "allowed_tools"}}}}) == "tool_choice");
  CHECK(refused({{"text", "json"}}) == "text");
  CHECK(refused({{"text", {{"format", "json"}}}}) == "text/format");
  CHECK(refused({{"text", {{"format", {{"type", "json_schema"}}}}}}) == "text/format/schema");
  CHECK(refused({{"text", {{"format", {{"type", "xml"}}}}}}) == "text/format/type");
  CHECK(refused({{"max_output_tokens", 0}}) == "max_output_tokens");
  CHECK(refused({{"temperature", "hot"}}) == "temperature");
  const auto wrong = parse({{"max_output_tokens", -2}});
  CHECK(wrong.error().error.detail.starts_with("max_output_tokens is a whole number"));
}

TEST_CASE("http response: items that are not text or calls are refused") {
  const Json image = {{"type", "input_image"}, {"image_url", "x"}};
  const Json inputs = {nullptr,
                       5,
                       Json::array(),
                       Json::object(),
                       {5},
                       {{{"type", "web_search_call"}}},
                       {{{"type", "item_reference"}, {"id", "msg_1"}}},
                       {{{"role", "user"}}},
                       {{{"role", 5}, {"content", "a"}}},
                       {{{"role", "user"}, {"content", {image}}}},
                       {{{"role", "user"}, {"content", {5}}}},
                       {{{"type", "function_call"}, {"call_id", "c"}, {"name", "add"}}},
                       {{{"type", "function_call_output"}, {"call_id", "c"}}},
                       {{{"type", "function_call_output"}, {"call_id", "c"}, {"output", 2}}},
                       {{{"type", "reasoning"}, {"content", 5}}}};
  for (const Json& input : inputs) {
    INFO(input.dump());
    CHECK_THAT(refused({{"input", input}}), Catch::StartsWith("input"));
  }
  CHECK(refused({{"input", {{{"role", "user"}, {"content", {image}}}}}}) ==
        "input/0/content/0/type");
  CHECK(refused({{"input", {{{"role", "other"}, {"content", "a"}}}}}) == "input/0/role");
}

TEST_CASE("http response: an answer has thoughts, messages and calls as items") {
  const Json json =
      written(request_of(false, {{"metadata", {{"a", "b"}}}, {"top_p", 0.5}}), said()).whole;
  CHECK(json["id"] == "resp_req-1");
  CHECK(json["object"] == "response");
  CHECK(json["status"] == "completed");
  CHECK(json["metadata"] == Json{{"a", "b"}});
  CHECK(json["top_p"] == 0.5);
  CHECK(json["store"] == false);
  CHECK(json["tools"] == Json::array());
  CHECK(json["error"].is_null());
  const Json& output = json["output"];
  REQUIRE(output.size() == 3);
  CHECK(output[0]["type"] == "reasoning");
  CHECK(output[0]["content"][0]["text"] == "Hm");
  CHECK(output[1]["type"] == "message");
  CHECK(output[1]["role"] == "assistant");
  CHECK(output[1]["content"][0]["type"] == "output_text");
  CHECK(output[1]["content"][0]["text"] == "Once");
  CHECK(output[2]["type"] == "function_call");
  CHECK(output[2]["call_id"] == "call_1");
  CHECK(output[2]["arguments"] == R"({"x":1})");
  for (const Json& item : output) CHECK(item["status"] == "completed");
  const Json usage = json["usage"];
  CHECK(usage["input_tokens"] == 3);
  CHECK(usage["input_tokens_details"]["cached_tokens"] == 2);
  CHECK(usage["output_tokens"] == 4);
  CHECK(usage["total_tokens"] == 7);
  CHECK(usage["output_tokens_details"]["reasoning_tokens"] == 1);
}

TEST_CASE("http response: the events of a stream make the same answer") {
  const Written streamed = written(request_of(true), said());
  CHECK(types(streamed) == std::vector<std::string>{"response.created",
                                                    "response.in_progress",
                                                    "response.output_item.added",
                                                    "response.content_part.added",
                                                    "response.reasoning_text.delta",
                                                    "response.reasoning_text.done",
                                                    "response.content_part.done",
                                                    "response.output_item.done",
                                                    "response.output_item.added",
                                                    "response.content_part.added",
                                                    "response.output_text.delta",
                                                    "response.output_text.delta",
                                                    "response.output_text.done",
                                                    "response.content_part.done",
                                                    "response.output_item.done",
                                                    "response.output_item.added",
                                                    "response.function_call_arguments.delta",
                                                    "response.function_call_arguments.done",
                                                    "response.output_item.done",
                                                    "response.completed"});
  CHECK(streamed.events[0]["response"]["status"] == "in_progress");
  CHECK(streamed.events[10]["delta"] == "On");
  CHECK(streamed.events[12]["text"] == "Once");
  const Json& output = streamed.events.back()["response"]["output"];
  CHECK(output == written(request_of(false), said()).whole["output"]);
  for (const int done : {7, 14, 18}) {
    const Json& event = streamed.events[done];
    CHECK(event["item"] == output[event["output_index"].get<std::size_t>()]);
  }
}

TEST_CASE("http response: a cut off answer is incomplete, an empty one has an empty message") {
  const std::vector<ChoicePart> cut{{.text = "On", .finish_reason = "length"}};
  const Json json = written(request_of(false), cut).whole;
  CHECK(json["status"] == "incomplete");
  CHECK(json["incomplete_details"]["reason"] == "max_output_tokens");
  CHECK(json["output"][0]["status"] == "incomplete");
  CHECK(types(written(request_of(true), cut)).back() == "response.incomplete");
  const Json empty = written(request_of(false), {{.finish_reason = "stop"}}).whole;
  REQUIRE(empty["output"].size() == 1);
  CHECK(empty["output"][0]["content"][0]["text"] == "");
}

TEST_CASE("http response: a stream that fails says why, with what was said so far") {
  const auto writer = answer_writer(request_of(true), "tiny", 5);
  (void)writer->add({.text = "On"}, {});
  const auto events = writer->failed({Errc::LeaseRevoked, "the key was revoked"});
  const Json last = Json::parse(events.back().data);
  CHECK(last["type"] == "response.failed");
  CHECK(last["response"]["status"] == "failed");
  CHECK(last["response"]["error"]["message"] == "the key was revoked");
  CHECK(last["response"]["output"][0]["content"][0]["text"] == "On");
  CHECK(last["response"]["output"][0]["status"] == "incomplete");
}

TEST_CASE("http response: logprobs are those of the text, not of thoughts") {
  std::vector<ChoicePart> parts{{.reasoning = "Hm"}, {}, {.text = "a", .finish_reason = "stop"}};
  parts[0].logprobs.push_back({.token = {"Hm", -1.0f}, .top = {}});
  parts[1].logprobs.push_back({.token = {"a", -0.5f}, .top = {{"a", -0.5f}}});
  const ApiRequest request = request_of(false, {{"top_logprobs", 1}});
  const Json shown = written(request, parts).whole["output"][1]["content"][0]["logprobs"];
  REQUIRE(shown.size() == 1);
  CHECK(shown[0]["token"] == "a");
  CHECK(shown[0]["top_logprobs"][0]["logprob"] == -0.5);
}

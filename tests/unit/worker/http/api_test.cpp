// Bodies of the OpenAI API: what is read, and what is refused with which field.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/http/api/api_request.hpp"

using namespace leasehold;
using namespace leasehold::http;
using Json = nlohmann::json;

namespace {

const ApiModel kModel{.name = "tiny", .max_context = 256};

ApiRequest read(Api api, Json body) {
  body["model"] = "tiny";
  const auto request = parse_api_request(api, body.dump(), kModel);
  REQUIRE(request.has_value());
  return *request;
}

/// The field that is refused.
std::string refused(Api api, Json body) {
  if (!body.contains("model")) body["model"] = "tiny";
  const auto request = parse_api_request(api, body.dump(), kModel);
  REQUIRE_FALSE(request.has_value());
  return request.error().param;
}

/// What the refusal says.
std::string refusal(Api api, Json body) {
  if (!body.contains("model")) body["model"] = "tiny";
  const auto request = parse_api_request(api, body.dump(), kModel);
  REQUIRE_FALSE(request.has_value());
  return request.error().error.detail;
}

Json chat(Json more = Json::object()) {
  more["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
  return more;
}

}  // namespace

TEST_CASE("http api: the worker may lower a token limit that is a default") {
  CHECK(read(Api::Chat, chat()).submit.may_shorten);
  CHECK(read(Api::Chat, chat({{"max_tokens", nullptr}})).submit.may_shorten);
  CHECK_FALSE(read(Api::Chat, chat({{"max_tokens", 7}})).submit.may_shorten);
  CHECK_FALSE(read(Api::Chat, chat({{"max_completion_tokens", 7}})).submit.may_shorten);
  CHECK(read(Api::Completions, {{"prompt", "Hi"}}).submit.may_shorten);
  CHECK_FALSE(read(Api::Completions, {{"prompt", "Hi"}, {"max_tokens", 7}}).submit.may_shorten);
  CHECK(read(Api::Responses, {{"input", "Hi"}}).submit.may_shorten);
  CHECK_FALSE(read(Api::Responses, {{"input", "Hi"}, {"max_output_tokens", 7}}).submit.may_shorten);
}

TEST_CASE("http api: a request reaches the model by each of its names, and by none") {
  const ApiModel model{.name = "tiny", .aliases = {"chat", "org/a b"}, .max_context = 256};
  const auto asked = [&](const Json& name) {
    return parse_api_request(Api::Chat, chat({{"model", name}}).dump(), model);
  };
  for (const char* name : {"tiny", "chat", "org/a b"}) CHECK(asked(name).value().model == name);
  CHECK(asked(nullptr).value().model == "tiny");
  CHECK(parse_api_request(Api::Chat, chat().dump(), model).value().model == "tiny");
  for (const char* name : {"", "Tiny", "org"}) {
    const auto unknown = asked(name);
    REQUIRE_FALSE(unknown.has_value());
    CHECK(error_answer(unknown.error()).status == 404);
    CHECK(unknown.error().param == "model");
    CHECK(unknown.error().code == "model_not_found");
  }
}

TEST_CASE("http api: the fields of a completion become those of a submission") {
  const ApiRequest request =
      read(Api::Completions,
           {{"prompt", "Once"},
            {"max_tokens", 7},
            {"temperature", 0},
            {"top_p", 0.5},
            {"top_k", 3},
            {"seed", 9},
            {"stop", {"a", "b"}},
            {"ignore_eos", true},
            {"stream", true},
            {"logit_bias", {{"5", -1.5}}},
            {"rid", "req-1"},
            {"some_new_field", {{"x", 1}}},
            {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", true}}}});
  CHECK(request.submit.prompt == "Once");
  CHECK(request.submit.max_emitted_tokens == 7);
  CHECK(request.submit.ignore_eos);
  CHECK(request.submit.request_id.value == "req-1");
  CHECK(request.submit.sampling.temperature == 0.0f);
  CHECK(request.submit.sampling.top_p == 0.5f);
  CHECK(request.submit.sampling.top_k == 3);
  CHECK(request.submit.sampling.seed == 9);
  CHECK(request.submit.sampling.stop.all == std::vector<std::string>{"a", "b"});
  CHECK(request.submit.sampling.logit_bias.by_token.at(5) == -1.5f);
  CHECK(request.stream);
  CHECK(request.include_usage);
  CHECK(request.continuous_usage);
}

TEST_CASE("http api: defaults are OpenAI's") {
  const ApiRequest completion = read(Api::Completions, {{"prompt", "Once"}});
  CHECK(completion.submit.max_emitted_tokens == 16);
  CHECK(completion.submit.sampling.temperature == 1.0f);
  CHECK_FALSE(completion.stream);
  const ApiRequest talk = read(Api::Chat, chat());
  CHECK(talk.submit.max_emitted_tokens == kModel.max_context);
  CHECK(talk.submit.messages->front().content == "Hi");
  CHECK(talk.submit.sampling.seed != read(Api::Chat, chat()).submit.sampling.seed);
}

TEST_CASE("http api: prompts are a text or tokens, contents a text or parts of text") {
  CHECK(read(Api::Completions, {{"prompt", Json::array({"one"})}}).submit.prompt == "one");
  CHECK(read(Api::Completions, {{"prompt", {1, 2}}}).submit.prompt_tokens ==
        std::vector<std::int32_t>{1, 2});
  const Json part = {{"type", "text"}, {"text", "a"}};
  const Json message = {{"role", "user"}, {"content", {part, part}}};
  CHECK(read(Api::Chat, {{"messages", {message}}}).submit.messages->front().content == "aa");
}

TEST_CASE("http api: logprobs with echo are also those of the prompt") {
  const auto scored =
      read(Api::Completions,
           {{"prompt", {{1, 2}, {3}}}, {"logprobs", 1}, {"echo", true}, {"max_tokens", 0}});
  CHECK(scored.submit.prompt_logprobs == 1u);
  CHECK(scored.submit.max_emitted_tokens == 0);
  CHECK_FALSE(scored.prompt_logprobs);
  CHECK_FALSE(read(Api::Completions, {{"prompt", "a"}, {"logprobs", 1}}).submit.prompt_logprobs);
  CHECK_FALSE(read(Api::Completions, {{"prompt", "a"}, {"echo", true}}).submit.prompt_logprobs);
  const auto talk = read(Api::Chat, chat({{"prompt_logprobs", 0}, {"n", 2}}));
  CHECK(submission_of(talk, 0).prompt_logprobs == 0u);
  CHECK_FALSE(submission_of(talk, 1).prompt_logprobs);
  CHECK_FALSE(read(Api::Chat, chat({{"prompt_logprobs", false}})).submit.prompt_logprobs);
}

TEST_CASE("http api: a promise that cannot be kept is refused with its field") {
  CHECK(refused(Api::Completions, Json::object()) == "prompt");
  CHECK(refused(Api::Completions, {{"prompt", {"one", 2}}}) == "prompt/1");
  CHECK(refused(Api::Completions, {{"prompt", Json::array()}}) == "prompt");
  CHECK(refused(Api::Completions, {{"prompt", std::vector<std::string>(17, "a")}}) == "prompt");
  CHECK(refused(Api::Completions, {{"prompt", {"one", "two"}}, {"n", 9}}) == "n");
  CHECK(refused(Api::Completions, {{"prompt", {-1}}}) == "prompt/0");
  CHECK(refused(Api::Completions, {{"prompt", "a"}, {"model", "other"}}) == "model");
  CHECK(refused(Api::Completions, {{"prompt", "a"}, {"echo", 1}}) == "echo");
  CHECK(refused(Api::Completions, {{"prompt", "a"}, {"logprobs", 21}}) == "logprobs");
  CHECK(refused(Api::Completions, {{"prompt", "a"}, {"prompt_logprobs", 21}}) == "prompt_logprobs");
  CHECK(refused(Api::Completions, {{"prompt", "a"}, {"prompt_logprobs", 1}, {"stream", true}}) ==
        "prompt_logprobs");
  CHECK(refused(Api::Completions,
                {{"prompt", "a"}, {"logprobs", 1}, {"echo", true}, {"resumable", true}}) ==
        "resumable");
  CHECK(refused(Api::Completions, {{"prompt", "a"}, {"best_of", 2}}) == "best_of");
  CHECK(refused(Api::Completions, {{"prompt", "a"}, {"rid", "no spaces"}}) == "rid");
  CHECK(refused(Api::Chat, Json::object()) == "messages");
  CHECK(refused(Api::Chat, {{"messages", {{{"role", "user"}}}}}) == "messages/0/content");
  CHECK(refused(Api::Chat, chat({{"n", 17}})) == "n");
  CHECK(refused(Api::Chat, chat({{"n", 0}})) == "n");
  CHECK(refused(Api::Chat, chat({{"top_logprobs", 2}})) == "top_logprobs");
  CHECK(refused(Api::Chat, chat({{"tools", {{{"type", "function"}}}}})) == "tools/0/function");
  CHECK(refused(Api::Chat, chat({{"tools", "all"}})) == "tools");
  CHECK(refused(Api::Chat, chat({{"tool_choice", "required"}})) == "tool_choice");
  CHECK(refused(Api::Chat, chat({{"chat_template_kwargs", 1}})) == "chat_template_kwargs");
  CHECK(refused(Api::Chat, chat({{"max_tokens", 0}})) == "max_tokens");
  CHECK(refused(Api::Chat, chat({{"max_completion_tokens", -3}})) == "max_completion_tokens");
  CHECK(refused(Api::Chat, chat({{"temperature", 1000}})) == "temperature");
  CHECK(refused(Api::Chat, chat({{"temperature", "hot"}})) == "temperature");
  CHECK(refused(Api::Chat, chat({{"stream", 1}})) == "stream");
  CHECK(refused(Api::Chat, chat({{"response_format", {{"type", "json_schema"}}}})) ==
        "response_format/json_schema");
  CHECK(refused(Api::Chat, chat({{"response_format", {{"type", "xml"}}}})) ==
        "response_format/type");
}

TEST_CASE("http api: the refusal of a count or a model says what was sent") {
  CHECK(refusal(Api::Chat, chat({{"max_tokens", 0}})) ==
        "max_tokens is a whole number from 1 to 1048576, got 0");
  CHECK(refusal(Api::Completions, {{"prompt", "a"}, {"max_tokens", 1.5}}) ==
        "max_tokens is a whole number from 0 to 1048576, got 1.5");
  CHECK(refusal(Api::Responses, {{"input", "a"}, {"max_output_tokens", -3}}) ==
        "max_output_tokens is a whole number from 1 to 1048576, got -3");
  CHECK(refusal(Api::Chat, chat({{"n", "2\n"}})) ==
        "n is a whole number from 1 to 16, got the text '2?'");
  CHECK(refusal(Api::Completions, {{"prompt", "a"}, {"logprobs", {{"x", 1}}}}) ==
        "logprobs is a whole number from 0 to 20, got an object");
  CHECK(refusal(Api::Chat, chat({{"model", "gpt-4\n"}})) ==
        "no model 'gpt-4?'; this worker serves 'tiny', see /v1/models");
}

TEST_CASE("http api: a body that is empty or not JSON is refused with what to send") {
  for (const char* empty : {"", " \r\n\t"}) {
    const auto request = parse_api_request(Api::Chat, empty, kModel);
    REQUIRE_FALSE(request.has_value());
    CHECK(request.error().error.code == Errc::BadRequest);
    CHECK(request.error().error.detail == "the body is empty; send JSON");
  }
  for (const char* text : {"{", "nothing", "\"\xff\""}) {
    const auto request = parse_api_request(Api::Chat, text, kModel);
    REQUIRE_FALSE(request.has_value());
    CHECK(request.error().error.detail ==
          "the body is not JSON in UTF-8; check its quotes, commas and brackets");
  }
}

TEST_CASE("http api: a resumable request that is sent again asks for the same text") {
  Json body{{"prompt", "once"}, {"request_id", "req-1"}, {"resumable", true}};
  const auto request = read(Api::Completions, body);
  CHECK(request.submit.resumable);
  CHECK(request.submit.to_json() == read(Api::Completions, body).submit.to_json());
  body["request_id"] = "req-2";
  CHECK(read(Api::Completions, body).submit.sampling.seed != request.submit.sampling.seed);
  body["n"] = 2;
  CHECK(refused(Api::Completions, body) == "resumable");
}

TEST_CASE("http api: each choice has its prompt, a seed of its own and an id of its own") {
  const auto request =
      read(Api::Completions, {{"prompt", {"one", "two"}}, {"n", 2}, {"seed", 7}, {"rid", "req-1"}});
  REQUIRE(choices_of(request) == 4);
  std::vector<wire::RequestSubmit> all;
  for (std::size_t i = 0; i < 4; ++i) all.push_back(submission_of(request, i));
  CHECK(all[0].request_id.value == "req-1");
  CHECK(all[1].prompt == "one");
  CHECK(all[2].prompt == "two");
  CHECK(all[0].sampling.seed == 7);
  CHECK(all[1].sampling.seed == 8);
  CHECK(all[2].sampling.seed == 7);
  CHECK(all[1].request_id != all[2].request_id);
  const auto tokens = read(Api::Completions, {{"prompt", {{1, 2}, {3}}}});
  CHECK(submission_of(tokens, 1).prompt_tokens == std::vector<std::int32_t>{3});
  CHECK(choices_of(read(Api::Chat, chat({{"n", 3}}))) == 3);
}

TEST_CASE("http api: logprobs are a count for completions, and a flag with a count for chats") {
  CHECK_FALSE(read(Api::Completions, {{"prompt", "a"}}).submit.sampling.logprobs);
  const auto completion = read(Api::Completions, {{"prompt", "a"}, {"logprobs", 3}});
  CHECK(completion.submit.sampling.logprobs);
  CHECK(completion.submit.sampling.top_logprobs == 3);
  CHECK(read(Api::Completions, {{"prompt", "a"}, {"logprobs", 0}}).submit.sampling.logprobs);
  const auto talk = read(Api::Chat, chat({{"logprobs", true}, {"top_logprobs", 4}}));
  CHECK(talk.submit.sampling.logprobs);
  CHECK(talk.submit.sampling.top_logprobs == 4);
  CHECK_FALSE(read(Api::Chat, chat({{"logprobs", false}})).submit.sampling.logprobs);
}

namespace {

const Json kTools = {
    {{"type", "function"},
     {"function",
      {{"name", "add"},
       {"parameters", {{"type", "object"}, {"properties", {{"x", {{"type", "number"}}}}}}}}}}};

Json named(const std::string& tool) {
  return {{"type", "function"}, {"function", {{"name", tool}}}};
}

}  // namespace

TEST_CASE("http api: tools go to the template, and tool_choice decides the form of the text") {
  const auto free = read(Api::Chat, chat({{"tools", kTools}}));
  CHECK(Json::parse(free.submit.tools) == kTools);
  CHECK(free.tool_form == ToolForm::Marked);
  CHECK(free.called_tools == std::vector<CalledTool>{{.name = "add"}});
  Json typed = kTools;
  typed[0]["function"]["parameters"]["properties"] = {{"a", {{"type", "string"}}},
                                                      {"b", {{"enum", Json::array({"x", "y"})}}},
                                                      {"c", {{"enum", Json::array({"x", 1})}}},
                                                      {"d", {{"type", "object"}}}};
  CHECK(read(Api::Chat, chat({{"tools", typed}})).called_tools.front().text_parameters ==
        std::vector<std::string>{"a", "b"});
  CHECK(read(Api::Chat, chat({{"tools", kTools}, {"response_format", {{"type", "json_object"}}}}))
            .tool_form == ToolForm::None);
  CHECK(free.submit.sampling.response_format.type == "text");
  const auto off = read(Api::Chat, chat({{"tools", kTools}, {"tool_choice", "none"}}));
  CHECK(off.submit.tools.empty());
  CHECK(off.tool_form == ToolForm::None);

  const auto required = read(Api::Chat, chat({{"tools", kTools}, {"tool_choice", "required"}}));
  CHECK(required.tool_form == ToolForm::Call);
  const Json any = Json::parse(required.submit.sampling.response_format.schema)["anyOf"];
  REQUIRE(any.size() == 1);
  CHECK(any[0]["properties"]["name"]["const"] == "add");
  CHECK(any[0]["properties"]["arguments"]["properties"].contains("x"));

  const auto one = read(Api::Chat, chat({{"tools", kTools}, {"tool_choice", named("add")}}));
  CHECK(one.tool_form == ToolForm::Arguments);
  CHECK(one.tool_name == "add");
  CHECK(Json::parse(one.submit.sampling.response_format.schema) ==
        kTools[0]["function"]["parameters"]);
  CHECK(refusal(Api::Chat, chat({{"tools", kTools}, {"tool_choice", named("sub")}})) ==
        "tool_choice: no tool is named 'sub'; send its name");
  CHECK(refusal(Api::Chat, chat({{"tools", kTools}, {"tool_choice", "any"}})) ==
        "tool_choice is none, auto, required or one of the tools, got the text 'any'");
  CHECK(refused(Api::Chat, chat({{"tools", kTools},
                                 {"tool_choice", "required"},
                                 {"response_format", {{"type", "json_object"}}}})) ==
        "tool_choice");
}

TEST_CASE("http api: tools may have any name and no parameters, and a forced call needs one") {
  Json tools = Json::array();
  for (int i = 0; i < 64; ++i)
    tools.push_back(
        {{"type", "function"}, {"function", {{"name", "do \"it\" #" + std::to_string(i)}}}});
  const auto any = read(Api::Chat, chat({{"tools", tools}, {"tool_choice", "required"}}));
  CHECK(any.called_tools.size() == 64);
  CHECK(any.called_tools.front().name == "do \"it\" #0");
  const auto one =
      read(Api::Chat, chat({{"tools", tools}, {"tool_choice", named("do \"it\" #63")}}));
  CHECK(Json::parse(one.submit.sampling.response_format.schema) ==
        Json{{"type", "object"}, {"additionalProperties", false}});
  CHECK(read(Api::Chat, chat({{"tools", Json::array()}, {"tool_choice", "auto"}})).tool_form ==
        ToolForm::None);
  CHECK(refusal(Api::Chat, chat({{"tools", Json::array()}, {"tool_choice", "required"}})) ==
        "tool_choice asks for a call, and there are no tools; send tools too");
}

TEST_CASE("http api: control tokens in a prompt are parsed only if it asks for them") {
  CHECK_FALSE(read(Api::Completions, {{"prompt", "<s>"}}).submit.parse_special);
  CHECK(read(Api::Completions, {{"prompt", "<s>"}, {"parse_special", true}}).submit.parse_special);
  CHECK(refused(Api::Completions, {{"prompt", "<s>"}, {"parse_special", 1}}) == "parse_special");
}

TEST_CASE("http api: fields that ask for nothing are not refused") {
  (void)read(Api::Chat, chat({{"n", 1},
                              {"tools", Json::array()},
                              {"logprobs", false},
                              {"tool_choice", "none"},
                              {"stop", nullptr}}));
}

TEST_CASE("http api: a schema keeps the order of its members") {
  const std::string body =
      R"({"model":"tiny","prompt":"a","response_format":{"type":"json_schema","json_schema":
         {"name":"s","strict":true,"schema":{"type":"object","properties":{"z":{},"a":{}}}}}})";
  const auto request = parse_api_request(Api::Completions, body, kModel);
  REQUIRE(request.has_value());
  const wire::ResponseFormat& format = request->submit.sampling.response_format;
  CHECK(format.type == "json_schema");
  CHECK(format.strict);
  CHECK(format.schema == R"({"type":"object","properties":{"z":{},"a":{}}})");
}

TEST_CASE("http api: malformed and deep bodies are refused") {
  for (const std::string& body : {std::string("{"), std::string("[]"), std::string(),
                                  R"({"a":)" + std::string(100'000, '[')}) {
    const auto request = parse_api_request(Api::Chat, body, kModel);
    REQUIRE_FALSE(request.has_value());
    CHECK(status_of(request.error().error.code) == 400);
  }
  const std::string deep =
      R"({"model":"tiny","prompt":"a","x":)" + std::string(40, '[') + std::string(40, ']') + "}";
  CHECK_FALSE(parse_api_request(Api::Completions, deep, kModel).has_value());
}

TEST_CASE("http api: a body of too many values is refused before it is parsed") {
  const auto body_of = [](int texts) {
    std::string body = R"({"model":"tiny","prompt":"a","x":[1)";
    for (int i = 0; i < texts; ++i) body += ",\"\"";
    return body + "]}";
  };
  CHECK(parse_api_request(Api::Completions, body_of(32'000), kModel).has_value());
  const auto refused = parse_api_request(Api::Completions, body_of(33'000), kModel);
  REQUIRE_FALSE(refused.has_value());
  CHECK(status_of(refused.error().error.code) == 400);
  CHECK(refused.error().error.detail.find("more than 32768 objects, arrays and texts") !=
        std::string::npos);
}

TEST_CASE("http errors: codes and statuses are OpenAI's where it has them") {
  const auto shape = [](Errc code, std::int64_t retry_after_ms = 0) {
    const Answer answer =
        error_answer({{.code = code, .detail = "why", .retry_after_ms = retry_after_ms}, "field"});
    return std::pair(answer, Json::parse(answer.body)["error"]);
  };
  const auto [too_long, error] = shape(Errc::PromptTooLong);
  CHECK(too_long.status == 400);
  CHECK(error["code"] == "context_length_exceeded");
  CHECK(error["type"] == "invalid_request_error");
  CHECK(error["param"] == "field");
  CHECK(error["message"] == "why");
  CHECK(shape(Errc::BadToken).second["code"] == "invalid_api_key");
  CHECK(shape(Errc::BadToken).first.status == 401);
  CHECK(shape(Errc::QuotaBlocks).first.status == 400);  // no retry changes it
  CHECK(shape(Errc::QuotaBlocks).first.retry_after_s == 0);
  CHECK(shape(Errc::QuotaBlocks, 1'000).first.status == 429);
  CHECK(shape(Errc::QuotaBlocks, 1'000).first.retry_after_s == 1);
  CHECK(shape(Errc::QuotaTokens, 1'500).first.status == 429);
  CHECK(shape(Errc::QuotaTokens, 1'500).first.retry_after_s == 2);
  CHECK(shape(Errc::QuotaConcurrent).first.retry_after_s == 1);
  CHECK(shape(Errc::Draining).first.status == 503);
  CHECK(shape(Errc::Draining).first.retry_after_s == 1);
  CHECK(shape(Errc::BadRequest).first.retry_after_s == 0);
}

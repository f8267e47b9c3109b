// Fields that constrain a text or call tools: what they become, and which value of a body is named
// when one is wrong.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/http/api/api_request.hpp"
#include "worker/text/grammar/compile.hpp"
#include "worker/text/grammar/grammar_matcher.hpp"

/// In a namespace of its own, because the tests of bodies have helpers of the same names.
namespace leasehold::http::fields_test {

using Json = nlohmann::ordered_json;

namespace {

std::expected<ApiRequest, ApiError> parse_body(Api api, Json body) {
  static const ApiModel kServed{.name = "m", .max_context = 256, .n_vocab = 300};
  body["model"] = "m";
  if (api == Api::Completions && !body.contains("prompt")) body["prompt"] = "Hi";
  if (api == Api::Responses) body["input"] = "Hi";
  if (api == Api::Chat) body["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
  return parse_api_request(api, body.dump(), kServed);
}

std::string refused_path(const Json& body, Api api = Api::Chat) {
  CAPTURE(body.dump());
  const auto request = parse_body(api, body);
  if (request) return "none";
  CHECK(request.error().error.code == Errc::BadRequest);
  return request.error().param;
}

/// Follows the grammar of a request, as the engine does.
bool accepts(const wire::Sampling& sampling, std::string_view text) {
  const GrammarSource source =
      sampling.regex.empty()
          ? GrammarSource{sampling.response_format.strict ? GrammarKind::JsonSchema
                                                          : GrammarKind::LenientJsonSchema,
                          sampling.response_format.schema}
          : GrammarSource{GrammarKind::Regex, sampling.regex};
  const auto grammar = compile_grammar(source);
  if (!grammar) FAIL(grammar.error().detail);
  GrammarMatcher matcher(*grammar);
  auto state = matcher.start();
  for (const char c : text) {
    WorkBudget work = WorkBudget::unlimited();
    state = matcher.next(matcher.retain(state).first, static_cast<std::uint8_t>(c), work);
  }
  return matcher.may_end(state);
}

Json tool(const char* name, Json parameters) {
  return {{"type", "function"},
          {"function", {{"name", name}, {"parameters", std::move(parameters)}}}};
}

/// The arguments that the text may have when this tool must be called, by each way to force it.
struct Forced {
  ApiRequest named;
  ApiRequest required;

  bool accepts_arguments(const char* name, const std::string& arguments) const {
    const bool by_name = accepts(named.submit.sampling, arguments);
    const bool by_call =
        accepts(required.submit.sampling,
                R"({"name":)" + Json(name).dump() + R"(,"arguments":)" + arguments + "}");
    CHECK(by_name == by_call);
    return by_name && by_call;
  }
};

Forced forced(const Json& tools, const char* name) {
  const Json choice = {{"type", "function"}, {"function", {{"name", name}}}};
  auto named = parse_body(Api::Chat, {{"tools", tools}, {"tool_choice", choice}});
  auto required = parse_body(Api::Chat, {{"tools", tools}, {"tool_choice", "required"}});
  for (const auto& request : {named, required})
    if (!request) FAIL(request.error().param << ": " << request.error().error.detail);
  return {*named, *required};
}

const Json kPoint =
    Json::parse(R"({"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]})");

}  // namespace

TEST_CASE("http tools: references of a tool's parameters name its own parts") {
  for (
      const char* parameters : {
          R"({"type":"object","properties":{"p":{"$ref":"#/$defs/Pt"}},"required":["p"],"$defs":{"Pt":POINT}})",
          R"({"type":"object","properties":{"p":{"$ref":"#/definitions/Pt"}},"required":["p"],"definitions":{"Pt":POINT}})",
          R"({"type":"object","properties":{"p":{"$ref":"#pt"}},"required":["p"],"$defs":{"Pt":{"$anchor":"pt","allOf":[POINT]}}})",
          R"({"type":"object","properties":{"p":{"$ref":"pt"}},"required":["p"],"$defs":{"Pt":{"$id":"pt","allOf":[POINT]}}})",
          R"({"$id":"https://x/y","type":"object","properties":{"p":{"$ref":"https://x/y#/$defs/Pt"}},"required":["p"],"$defs":{"Pt":POINT}})",
          R"({"$ref":"#/$defs/Whole","$defs":{"Whole":{"type":"object","properties":{"p":{"$ref":"#/$defs/Pt"}},"required":["p"]},"Pt":POINT}})",
      }) {
    std::string text = parameters;
    text.replace(text.find("POINT"), 5, kPoint.dump());
    CAPTURE(text);
    const Forced call = forced(Json::array({tool("f", Json::parse(text))}), "f");
    CHECK(call.accepts_arguments("f", R"({"p":{"x":1}})"));
    CHECK_FALSE(call.accepts_arguments("f", R"({"p":{"x":"1"}})"));
    CHECK_FALSE(call.accepts_arguments("f", R"({"p":1})"));
  }
}

TEST_CASE("http tools: a recursive schema of parameters stays within its tool") {
  const Json tree = Json::parse(
      R"({"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"required":["kids"]})");
  const Forced call = forced(Json::array({tool("a", kPoint), tool("b", tree)}), "b");
  CHECK(call.accepts_arguments("b", R"({"kids":[{"kids":[]}]})"));
  CHECK_FALSE(call.accepts_arguments("b", R"({"kids":[{"x":1}]})"));
  CHECK_FALSE(call.accepts_arguments("b", R"({"kids":[{"name":"a","arguments":{"x":1}}]})"));
}

TEST_CASE("http tools: equal names of definitions belong to their tools") {
  const auto of_type = [](const char* type) {
    return Json::parse(std::string(R"({"type":"object","properties":{"v":{"$ref":"#/$defs/V"}},
             "required":["v"],"$defs":{"V":{"$id":"v","$anchor":"v","type":")") +
                       type + R"("}}})");
  };
  const Json tools = {tool("a", of_type("integer")), tool("b", of_type("boolean"))};
  CHECK(forced(tools, "a").accepts_arguments("a", R"({"v":1})"));
  CHECK_FALSE(forced(tools, "a").accepts_arguments("a", R"({"v":true})"));
  CHECK(forced(tools, "b").accepts_arguments("b", R"({"v":true})"));
  CHECK_FALSE(forced(tools, "b").accepts_arguments("b", R"({"v":1})"));
}

TEST_CASE("http tools: arguments are always an object") {
  for (const Json& parameters :
       {Json::object(), Json{{"type", "object"}}, Json{{"description", "none"}},
        Json{{"type", {"object", "null"}}}, Json{{"additionalProperties", true}}}) {
    CAPTURE(parameters.dump());
    const Forced call = forced(Json::array({tool("f", parameters)}), "f");
    CHECK(call.accepts_arguments("f", "{}"));
    CHECK(call.accepts_arguments("f", R"({"a":1})"));
    for (const char* other : {"null", "false", "1", "[]", "\"{}\""})
      CHECK_FALSE(call.accepts_arguments("f", other));
  }
  const Json bare = {{"type", "function"}, {"function", {{"name", "f"}}}};
  CHECK(forced(Json::array({bare}), "f").accepts_arguments("f", "{}"));
  for (const char* other : {"null", R"({"a":1})"})
    CHECK_FALSE(forced(Json::array({bare}), "f").accepts_arguments("f", other));
}

TEST_CASE("http tools: a name that JSON escapes is called by it") {
  const char* name = "say \"hi\"\\\n";
  CHECK(forced(Json::array({tool(name, kPoint)}), name).accepts_arguments(name, R"({"x":1})"));
}

TEST_CASE("http tools: a strict tool has a strict schema") {
  Json strict = tool("f", kPoint);
  CHECK_FALSE(forced(Json::array({strict}), "f").named.submit.sampling.response_format.strict);
  strict["function"]["strict"] = true;
  CHECK(forced(Json::array({strict}), "f").named.submit.sampling.response_format.strict);
  CHECK(forced(Json::array({strict}), "f").required.submit.sampling.response_format.strict);
}

TEST_CASE("http constraints: the whole text is one of the choices") {
  const auto request =
      parse_body(Api::Chat, {{"guided_choice", {"yes", "no (maybe)", "a|b", "é\\"}}});
  REQUIRE(request.has_value());
  for (const char* text : {"yes", "no (maybe)", "a|b", "é\\"})
    CHECK(accepts(request->submit.sampling, text));
  for (const char* text : {"", "a", "b", "no", "yes!", "yesno"})
    CHECK_FALSE(accepts(request->submit.sampling, text));
  const auto empty = parse_body(Api::Chat, {{"guided_choice", {""}}});
  REQUIRE(empty.has_value());
  CHECK(accepts(empty->submit.sampling, ""));
  CHECK_FALSE(accepts(empty->submit.sampling, "a"));
}

TEST_CASE("http constraints: of two the second is refused, and one beside a forced call") {
  CHECK(refused_path({{"guided_regex", "a"}, {"guided_choice", {"a"}}}) == "guided_choice");
  CHECK(refused_path({{"guided_choice", {"a"}}, {"guided_regex", "a"}}) == "guided_regex");
  CHECK(refused_path({{"grammar", "root ::= \"a\""},
                      {"response_format", {{"type", "json_object"}}}}) == "response_format");
  CHECK(refused_path({{"structured_outputs", {{"regex", "a"}, {"choice", {"a"}}}}}) ==
        "structured_outputs/choice");
  CHECK(refused_path({{"response_format",
                       {{"type", "json_object"}, {"value", kPoint}, {"schema", kPoint}}}}) ==
        "response_format/schema");
  CHECK(refused_path({{"guided_json", kPoint},
                      {"tools", Json::array({tool("f", kPoint)})},
                      {"tool_choice", "required"}}) == "tool_choice");
  // A field that asks for nothing does not count.
  CHECK(refused_path({{"guided_regex", "a"},
                      {"grammar", ""},
                      {"guided_json", nullptr},
                      {"response_format", {{"type", "text"}}},
                      {"structured_outputs", Json::object()}}) == "none");
}

TEST_CASE("http constraints: a schema is strict unless OpenAI's format says otherwise") {
  const auto strict = [](const Json& body) {
    return parse_body(Api::Chat, body)->submit.sampling.response_format.strict;
  };
  CHECK(strict({{"guided_json", kPoint}}));
  CHECK(strict({{"response_format", {{"type", "json_object"}, {"schema", kPoint}}}}));
  const auto format = [](Json named) {
    return Json{{"response_format", {{"type", "json_schema"}, {"json_schema", std::move(named)}}}};
  };
  CHECK_FALSE(strict(format({{"schema", kPoint}})));
  CHECK(strict(format({{"schema", kPoint}, {"strict", true}})));
}

TEST_CASE("http constraints: those of a response are those of a chat") {
  const auto request = parse_body(
      Api::Responses,
      {{"text", {{"format", {{"type", "json_schema"}, {"schema", kPoint}, {"strict", true}}}}}});
  REQUIRE(request.has_value());
  CHECK(request->submit.sampling.response_format.schema == kPoint.dump());
  CHECK(request->submit.sampling.response_format.strict);
  CHECK(parse_body(Api::Responses, {{"guided_choice", {"a"}}})->submit.sampling.regex == "a");
  CHECK(refused_path({{"text", {{"format", {{"type", "xml"}}}}}}, Api::Responses) ==
        "text/format/type");
  CHECK(refused_path({{"guided_choice", {"a", 1}}}, Api::Responses) == "guided_choice/1");
}

TEST_CASE("http fields: a refusal names the value by its pointer") {
  const std::pair<Json, const char*> kWrong[] = {
      {{{"top_p", 1.1}}, "top_p"},
      {{{"temperature", "hot"}}, "temperature"},
      {{{"presence_penalty", 3}}, "presence_penalty"},
      {{{"repeat_penalty", 0}}, "repeat_penalty"},
      {{{"repetition_penalty", 1.5}, {"repeat_penalty", 1.2}}, "repeat_penalty"},
      {{{"top_k", -2}}, "top_k"},
      {{{"top_k", 1.5}}, "top_k"},
      {{{"seed", 0.5}}, "seed"},
      {{{"seed", 1e30}}, "seed"},
      {{{"max_tokens", 5}, {"max_completion_tokens", 6}}, "max_tokens"},
      {{{"stop", {"a", 1}}}, "stop/1"},
      {{{"stop", {"a", ""}}}, "stop/1"},
      {{{"stop", ""}}, "stop"},
      {{{"stop", std::vector<std::string>(65, "a")}}, "stop"},
      {{{"stop_token_ids", {-1}}}, "stop_token_ids/0"},
      {{{"stop_token_ids", {1, 300}}}, "stop_token_ids/1"},
      {{{"stop_token_ids", 3}}, "stop_token_ids"},
      {{{"logit_bias", {{"x", 1}}}}, "logit_bias/x"},
      {{{"logit_bias", {{"a/b~", 1}}}}, "logit_bias/a~1b~0"},
      {{{"logit_bias", {{"5", 101}}}}, "logit_bias/5"},
      {{{"logit_bias", {{"300", 1}}}}, "logit_bias/300"},
      {{{"logit_bias", Json::array({{1, 2}, {3, false}})}}, "logit_bias/1/1"},
      {{{"stream_options", {{"include_usage", 1}}}}, "stream_options/include_usage"},
      {{{"tools", {tool("f", kPoint), {{"type", "function"}}}}}, "tools/1/function"},
      {{{"tools", {tool("", kPoint)}}}, "tools/0/function/name"},
      {{{"tools", {tool("f", 1)}}}, "tools/0/function/parameters"},
      {{{"tools", {{{"type", "web_search"}}}}}, "tools/0/type"},
      {{{"response_format", {{"type", "json_schema"}, {"json_schema", {{"schema", 1}}}}}},
       "response_format/json_schema/schema"},
      {{{"response_format",
         {{"type", "json_schema"}, {"json_schema", {{"schema", kPoint}, {"strict", 1}}}}}},
       "response_format/json_schema/strict"},
      {{{"response_format", {{"type", "structural_tag"}}}}, "response_format/type"},
      {{{"structured_outputs", {{"structural_tag", "x"}}}}, "structured_outputs/structural_tag"},
      {{{"guided_json", "{"}}, "guided_json"},
      {{{"guided_choice", Json::array()}}, "guided_choice"},
      {{{"guided_regex", "("}}, "guided_regex"},
      {{{"structured_outputs", {{"regex", "(?=a)"}}}}, "structured_outputs/regex"},
      {{{"grammar", "root = x"}}, "grammar"},
      {{{"guided_regex", std::string(40'000, 'a')}}, "guided_regex"},
      {{{"min_tokens", 7}, {"max_tokens", 6}}, "min_tokens"},
      {{{"min_tokens", 1}, {"guided_regex", "a"}}, "min_tokens"},
      {{{"ignore_eos", true}, {"guided_regex", "a"}}, "ignore_eos"},
      {{{"continue_final_message", true}, {"add_generation_prompt", true}},
       "continue_final_message"},
      {{{"echo", true}}, "echo"},
      {{{"reasoning_effort", "banana"}}, "reasoning_effort"},
      {{{"reasoning_effort", 1}}, "reasoning_effort"},
  };
  for (const auto& [body, path] : kWrong) CHECK(refused_path(body) == path);
  CHECK(refused_path({{"prompt", {1, -1}}}, Api::Completions) == "prompt/1");
  CHECK(refused_path({{"prompt", {{1}, {2, 300}}}}, Api::Completions) == "prompt/1/1");
  CHECK(refused_path({{"max_output_tokens", 0}}, Api::Responses) == "max_output_tokens");
  CHECK(refused_path({{"tools", {{{"type", "function"}, {"name", "f"}, {"parameters", 1}}}}},
                     Api::Responses) == "tools/0/parameters");
}

TEST_CASE("http fields: a seed of -1 is any seed, the same when the request is sent again") {
  const Json body{{"seed", -1}, {"request_id", "r"}};
  const auto once = parse_body(Api::Chat, body);
  REQUIRE(once.has_value());
  CHECK(once->submit.sampling.seed == parse_body(Api::Chat, body)->submit.sampling.seed);
  CHECK(once->submit.sampling.seed != ~std::uint64_t{0});
}

TEST_CASE("http fields: the path of the schema that the worker compiles is known") {
  const auto path = [](const Json& body, Api api = Api::Chat) {
    CAPTURE(body.dump());
    const auto request = parse_body(api, body);
    REQUIRE(request.has_value());
    return request->schema_path;
  };
  const Json schema = {{"type", "strange"}};
  CHECK(path({{"guided_json", schema}}) == "guided_json");
  CHECK(path({{"guided_json", schema.dump()}}) == "guided_json");
  CHECK(path({{"structured_outputs", {{"json", schema}}}}) == "structured_outputs/json");
  CHECK(path({{"response_format", {{"type", "json_object"}, {"schema", schema}}}}) ==
        "response_format/schema");
  CHECK(path({{"response_format",
               {{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}}}}) ==
        "response_format/json_schema/schema");
  CHECK(path({{"text", {{"format", {{"type", "json_schema"}, {"name", "n"}, {"schema", schema}}}}}},
             Api::Responses) == "text/format/schema");
  const Json call = {{"type", "function"}, {"function", {{"name", "f"}}}};
  CHECK(path({{"tools", {tool("f", schema)}}, {"tool_choice", call}}) ==
        "tools/0/function/parameters");
  CHECK(path({{"tools", {tool("f", schema)}}, {"tool_choice", "required"}}) == "tools");
  CHECK(path({{"tools", {tool("f", schema)}}}).empty());
  CHECK(path({{"guided_regex", "a"}}).empty());
}

}  // namespace leasehold::http::fields_test

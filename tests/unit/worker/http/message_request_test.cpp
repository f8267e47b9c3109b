// The bodies of Anthropic's API become chats. Every field that its reference documents is honoured,
// is refused by name, or does not affect the text.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "worker/http/api/api_request.hpp"
#include "worker/http/api/tokenize_api.hpp"

namespace leasehold::http::message_request_test {
namespace {

using Json = nlohmann::json;

const ApiModel kModel{.name = "m", .max_context = 4096, .n_vocab = 300};
const Json kSchema = {{"type", "object"}, {"properties", {{"way", {{"type", "string"}}}}}};
const Json kTool = {{"name", "turn"}, {"description", "Turns."}, {"input_schema", kSchema}};
const Json kCall = {
    {"type", "tool_use"}, {"id", "c1"}, {"name", "turn"}, {"input", {{"way", "left"}}}};

std::expected<ApiRequest, ApiError> parse(const Json& more) {
  Json body{
      {"model", "m"}, {"max_tokens", 2048}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  body.update(more);
  return parse_api_request(Api::Messages, body.dump(), kModel);
}

ApiRequest read(const Json& more) {
  const auto request = parse(more);
  if (!request) FAIL(request.error().param << ": " << request.error().error.detail);
  return *request;
}

/// The path of the refused field.
std::string refused(const Json& more) {
  const auto request = parse(more);
  REQUIRE_FALSE(request.has_value());
  CHECK(request.error().error.code == Errc::BadRequest);
  CHECK_FALSE(request.error().error.detail.empty());
  return request.error().param;
}

Json block(const std::string& text) {
  return {{"type", "text"}, {"text", text}};
}

Json result(const Json& content, const Json& more = Json::object()) {
  Json json{{"type", "tool_result"}, {"tool_use_id", "c1"}, {"content", content}};
  json.update(more);
  return json;
}

/// Documented fields that change no text.
const char* const kNoPromise[] = {"cache_control", "diagnostics", "service_tier", "speed"};

/// A field with a value that is honoured, and how its effect shows.
struct Probe {
  std::string field;
  Json value;
  std::function<bool(const ApiRequest&)> had_effect;
};

auto variables(const std::string& json) {
  return [=](const ApiRequest& r) { return r.submit.chat_template_kwargs == json; };
}

std::vector<Probe> probes() {
  const Json format = {{"type", "json_schema"}, {"schema", kSchema}};
  const auto has_schema = [](const ApiRequest& r) {
    const wire::ResponseFormat& bound = r.submit.sampling.response_format;
    return Json::parse(bound.schema) == kSchema && bound.strict;
  };
  return {
      {"model", "m", [](const auto&) { return true; }},
      {"max_tokens", 7,
       [](const auto& r) { return r.submit.max_emitted_tokens == 7 && r.submit.may_shorten; }},
      {"messages",
       {{{"role", "user"}, {"content", "x"}}},
       [](const auto& r) { return r.submit.messages->front().content == "x"; }},
      {"system", "Be kind.",
       [](const auto& r) {
         return r.submit.messages->front().role == "system" &&
                r.submit.messages->front().content == "Be kind.";
       }},
      {"stop_sequences",
       {"x", "y"},
       [](const auto& r) { return r.submit.sampling.stop == wire::StringList{{"x", "y"}}; }},
      {"stream", true, [](const auto& r) { return r.stream; }},
      {"temperature", 0, [](const auto& r) { return r.submit.sampling.temperature == 0.0f; }},
      {"top_p", 0.5, [](const auto& r) { return r.submit.sampling.top_p == 0.5f; }},
      {"top_k", 3, [](const auto& r) { return r.submit.sampling.top_k == 3; }},
      {"tools", Json::array({kTool}),
       [](const auto& r) { return r.tool_form == ToolForm::Marked; }},
      {"tool_choice",
       {{"type", "auto"}, {"disable_parallel_tool_use", true}},
       [](const auto& r) { return !r.parallel_tool_calls; }},
      {"thinking",
       {{"type", "enabled"}, {"budget_tokens", 1024}},
       variables(R"({"enable_thinking":true})")},
      {"thinking", {{"type", "adaptive"}}, variables(R"({"enable_thinking":true})")},
      {"thinking", {{"type", "disabled"}}, variables(R"({"enable_thinking":false})")},
      {"thinking",
       {{"type", "adaptive"}, {"display", "omitted"}},
       [](const auto& r) { return r.omits_thinking; }},
      {"output_config", {{"effort", "low"}}, variables(R"({"reasoning_effort":"low"})")},
      {"output_config", {{"format", format}}, has_schema},
      {"output_format", format, has_schema},
      {"metadata", {{"user_id", "u"}}, [](const auto&) { return true; }},
      {"context_management",
       {{"edits", {{{"type", "clear_thinking_20251015"}, {"keep", "all"}}}}},
       [](const auto&) { return true; }},
      {"container", nullptr, [](const auto&) { return true; }},
      {"mcp_servers", Json::array(), [](const auto&) { return true; }},
      {"inference_geo", "global", [](const auto&) { return true; }},
  };
}

}  // namespace

TEST_CASE("http message: each documented field is honoured, or promises nothing about the text") {
  const Json plain = read(Json::object()).submit.to_json();
  std::set<std::string> known;
  for (const Probe& probe : probes()) {
    CAPTURE(probe.field, probe.value.dump());
    CHECK(probe.had_effect(read({{probe.field, probe.value}})));
    known.insert(probe.field);
  }
  for (const std::string field : kNoPromise) {
    CAPTURE(field);
    Json same = read({{field, "some value"}}).submit.to_json();
    same["request_id"] = plain["request_id"];
    same["sampling"]["seed"] = plain["sampling"]["seed"];
    CHECK(same == plain);
    known.insert(field);
  }
  const char* const kDocumented[] = {"cache_control", "container",     "context_management",
                                     "diagnostics",   "inference_geo", "max_tokens",
                                     "mcp_servers",   "messages",      "metadata",
                                     "model",         "output_config", "output_format",
                                     "service_tier",  "speed",         "stop_sequences",
                                     "stream",        "system",        "temperature",
                                     "thinking",      "tool_choice",   "tools",
                                     "top_k",         "top_p"};
  CHECK(known == std::set<std::string>(std::begin(kDocumented), std::end(kDocumented)));
}

TEST_CASE("http message: a value that is not built or not valid is refused with its path") {
  const std::pair<Json, const char*> wrong[] = {
      {{{"max_tokens", nullptr}}, "max_tokens"},
      {{{"max_tokens", 0}}, "max_tokens"},
      {{{"container", "c"}}, "container"},
      {{{"compaction", {{"type", "auto"}}}}, "compaction"},
      {{{"fallbacks", {"other"}}}, "fallbacks"},
      {{{"inference_geo", "us"}}, "inference_geo"},
      {{{"mcp_servers", {{{"url", "x"}}}}}, "mcp_servers"},
      {{{"thread", {{"type", "create"}}}}, "thread"},
      {{{"metadata", 1}}, "metadata"},
      {{{"context_management", {{"edits", {{{"type", "clear_tool_uses_20250919"}}}}}}},
       "context_management/edits/0"},
      {{{"context_management", {{"edits", 1}}}}, "context_management/edits"},
      {{{"stop", "x"}}, "stop"},
      {{{"stop_sequences", "x"}}, "stop_sequences"},
      {{{"stop_sequences", {"x", ""}}}, "stop_sequences/1"},
      {{{"stop_token_ids", {-1}}}, "stop_token_ids/0"},
      {{{"n", 2}}, "n"},
      {{{"echo", true}}, "echo"},
      {{{"logprobs", true}}, "logprobs"},
      {{{"prompt_logprobs", 0}}, "prompt_logprobs"},
      {{{"resumable", true}}, "resumable"},
      {{{"include_stop_str_in_output", true}}, "include_stop_str_in_output"},
      {{{"response_format", {{"type", "json_object"}}}}, "response_format"},
      {{{"logits_processors", {"x"}}}, "logits_processors"},
      {{{"temperature", "hot"}}, "temperature"},
      {{{"system", 5}}, "system"},
      {{{"system", {{{"type", "image"}}}}}, "system/0/type"},
      {{{"thinking", "on"}}, "thinking"},
      {{{"thinking", {{"type", "on"}}}}, "thinking/type"},
      {{{"thinking", {{"type", "enabled"}}}}, "thinking/budget_tokens"},
      {{{"thinking", {{"type", "enabled"}, {"budget_tokens", 8}}}}, "thinking/budget_tokens"},
      {{{"thinking", {{"type", "enabled"}, {"budget_tokens", 2048}}}}, "thinking/budget_tokens"},
      {{{"thinking", {{"type", "adaptive"}, {"display", "all"}}}}, "thinking/display"},
      {{{"chat_template_kwargs", 1}}, "chat_template_kwargs"},
      {{{"output_config", 1}}, "output_config"},
      {{{"output_config", {{"effort", 1}}}}, "output_config/effort"},
      {{{"output_config", {{"effort", "banana"}}}}, "output_config/effort"},
      {{{"output_config", {{"format", {{"type", "xml"}}}}}}, "output_config/format/type"},
      {{{"output_config", {{"format", {{"type", "json_schema"}}}}}}, "output_config/format/schema"},
      {{{"tools", "all"}}, "tools"},
      {{{"tools", {1}}}, "tools/0"},
      {{{"tools", {{{"type", "web_search_20250305"}, {"name", "web_search"}}}}}, "tools/0/type"},
      {{{"tools", {{{"name", ""}, {"input_schema", kSchema}}}}}, "tools/0/name"},
      {{{"tools", {{{"name", "turn"}}}}}, "tools/0/input_schema"},
      {{{"tool_choice", "any"}}, "tool_choice"},
      {{{"tool_choice", {{"type", "some"}}}}, "tool_choice/type"},
      {{{"tool_choice", {{"type", "any"}}}}, "tool_choice/type"},
      {{{"tools", Json::array({kTool})}, {"tool_choice", {{"type", "tool"}, {"name", "go"}}}},
       "tool_choice/name"},
      {{{"tools", Json::array({kTool})}, {"tool_choice", {{"type", "tool"}}}}, "tool_choice/name"}};
  for (const auto& [more, path] : wrong) {
    INFO(more.dump());
    CHECK(refused(more) == path);
  }
  Json tool = kTool;
  tool["strict"] = 1;
  CHECK(refused({{"tools", {tool}}}) == "tools/0/strict");
  tool = kTool;
  tool["defer_loading"] = true;
  CHECK(refused({{"tools", {tool}}}) == "tools/0/defer_loading");
  tool = kTool;
  tool["allowed_callers"] = {"code_execution_20250825"};
  CHECK(refused({{"tools", {tool}}}) == "tools/0/allowed_callers");
  const auto stop = parse({{"stop_sequences", {""}}});
  CHECK(stop.error().error.detail.starts_with("stop_sequences/0 is a text"));
  const auto token = parse({{"stop_token_ids", {-1}}});
  CHECK(token.error().error.detail.starts_with("stop_token_ids/0 is a whole number"));
  CHECK(parse({{"model", "other"}}).error().error.code == Errc::UnknownRequest);
}

TEST_CASE("http message: blocks become the messages of a chat") {
  const Json talk = {
      {{"role", "user"}, {"content", {block("Left"), block("or right?")}}},
      {{"role", "user"}, {"content", "Say."}},
      {{"role", "assistant"},
       {"content",
        {{{"type", "thinking"}, {"thinking", "Hm"}, {"signature", ""}},
         {{"type", "redacted_thinking"}, {"data", "x"}},
         block("I "),
         block("turn."),
         kCall}}},
      {{"role", "user"},
       {"content", {result({block("done"), block("now")}, {{"is_error", true}}), block("And?")}}},
      {{"role", "system"}, {"content", "Be brief."}}};
  const ApiRequest request = read({{"system", {block("Be"), block("kind.")}}, {"messages", talk}});
  const auto& all = *request.submit.messages;
  REQUIRE(all.size() == 6);
  CHECK(all[0].role == "system");
  CHECK(all[0].content == "Be\nkind.");
  CHECK(all[1].role == "user");
  CHECK(all[1].content == "Left\nor right?\nSay.");
  CHECK(all[2].role == "assistant");
  CHECK(all[2].reasoning_content == "Hm");
  CHECK(all[2].content == "I turn.");
  const Json call = Json::parse(all[2].tool_calls)[0];
  CHECK(call["id"] == "c1");
  CHECK(call["function"]["name"] == "turn");
  CHECK(Json::parse(call["function"]["arguments"].get<std::string>()) == Json{{"way", "left"}});
  CHECK(all[3].role == "tool");
  CHECK(all[3].tool_call_id == "c1");
  CHECK(all[3].content == "Error: done\nnow");
  CHECK(all[4].role == "user");
  CHECK(all[4].content == "And?");
  CHECK(all[5].role == "system");
  CHECK(request.submit.add_generation_prompt);
}

TEST_CASE("http message: a last message of the assistant is continued") {
  const Json user = {{"role", "user"}, {"content", "The capital?"}};
  const ApiRequest begun =
      read({{"messages", {user, {{"role", "assistant"}, {"content", "It is"}}}}});
  CHECK(begun.submit.continue_final_message);
  CHECK_FALSE(begun.submit.add_generation_prompt);
  for (const Json& nothing : {Json(""), Json::array(), Json(nullptr)}) {
    const ApiRequest empty =
        read({{"messages", {user, {{"role", "assistant"}, {"content", nothing}}}}});
    CHECK(empty.submit.messages->size() == 1);
    CHECK(empty.submit.add_generation_prompt);
  }
}

TEST_CASE("http message: blocks of other types, or in a message of another role, are refused") {
  const auto refused_in = [](const char* role, const Json& content) {
    return refused({{"messages", {{{"role", role}, {"content", content}}}}});
  };
  for (const Json& none : {Json(nullptr), Json(5), Json("Hi"), Json::array()})
    CHECK(refused({{"messages", none}}) == "messages");
  CHECK(refused({{"messages", {"Hi"}}}) == "messages/0");
  for (const char* role : {"tool", "developer", ""})
    CHECK(refused_in(role, "Hi") == "messages/0/role");
  CHECK(refused_in("user", nullptr) == "messages/0/content");
  CHECK(refused_in("user", Json::array()) == "messages/0/content");
  CHECK(refused_in("user", 5) == "messages/0/content");
  CHECK(refused_in("user", {block("a"), {{"type", "image"}}}) == "messages/0/content/1/type");
  CHECK(refused_in("user", {{{"type", "document"}}}) == "messages/0/content/0/type");
  CHECK(refused_in("user", Json::array({5})) == "messages/0/content/0/type");
  CHECK(refused_in("user", {{{"type", "text"}}}) == "messages/0/content/0/text");
  CHECK(refused_in("user", Json::array({kCall})) == "messages/0/content/0/type");
  CHECK(refused_in("assistant", Json::array({result("x")})) == "messages/0/content/0/type");
  CHECK(refused_in("user", Json::array({result("x")})) == "messages/0/content/0/tool_use_id");
  CHECK(refused_in("assistant", Json::array({kCall})) == "messages/0");
  Json call = kCall;
  call["input"] = "{}";
  CHECK(refused_in("assistant", Json::array({call})) == "messages/0/content/0/input");
  const Json said = {{"role", "assistant"}, {"content", Json::array({kCall})}};
  const auto refused_result = [&](const Json& wrong) {
    return refused({{"messages", {said, {{"role", "user"}, {"content", {wrong}}}}}});
  };
  CHECK(refused_result(result({{{"type", "image"}}})) == "messages/1/content/0/content/0/type");
  CHECK(refused_result(result("x", {{"is_error", 1}})) == "messages/1/content/0/is_error");
}

TEST_CASE("http message: tools and their choice are those of a chat") {
  Json tool = kTool;
  tool["cache_control"] = {{"type", "ephemeral"}};
  tool["type"] = "custom";
  const Json shown = Json::parse(read({{"tools", {tool}}}).submit.tools)[0];
  CHECK(shown["type"] == "function");
  CHECK(shown["function"] ==
        Json{{"name", "turn"}, {"description", "Turns."}, {"parameters", kSchema}});
  const auto chosen = [&](const Json& choice) {
    return read({{"tools", Json::array({kTool})}, {"tool_choice", choice}});
  };
  CHECK(chosen({{"type", "any"}}).tool_form == ToolForm::Call);
  CHECK(chosen({{"type", "any"}}).schema_path == "tools");
  const ApiRequest named = chosen({{"type", "tool"}, {"name", "turn"}});
  CHECK(named.tool_form == ToolForm::Arguments);
  CHECK(named.tool_name == "turn");
  CHECK(named.schema_path == "tools/0/input_schema");
  CHECK(chosen({{"type", "none"}}).submit.tools.empty());
  CHECK(chosen({{"type", "auto"}}).parallel_tool_calls);
}

TEST_CASE("http message: its tokens are counted without max_tokens") {
  const EncodeChat encode = [](const wire::RequestSubmit& chat) -> Result<std::vector<TokenId>> {
    if (chat.messages->back().content == "long") return fail(Errc::PromptTooLong, "too long");
    return std::vector<TokenId>(chat.messages->size() + chat.tools.size());
  };
  const auto count = [&](Json more) {
    more["model"] = "m";
    return count_message_tokens(more.dump(), kModel, encode);
  };
  const auto talk = [](const std::string& text) {
    return Json{{{"role", "user"}, {"content", text}}};
  };
  const Answer counted = count({{"system", "Be kind."}, {"messages", talk("Hi")}});
  CHECK(counted.status == 200);
  CHECK(Json::parse(counted.body) == Json{{"input_tokens", 2}});
  const Answer tools = count({{"tools", Json::array({kTool})}, {"messages", talk("Hi")}});
  CHECK(Json::parse(tools.body)["input_tokens"] > 2);
  CHECK(count({{"messages", talk("long")}}).status == 400);
  CHECK(Json::parse(count({{"messages", 5}}).body)["error"]["param"] == "messages");
}

}  // namespace leasehold::http::message_request_test

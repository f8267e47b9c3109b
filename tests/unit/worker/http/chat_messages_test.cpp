// The messages of a chat: which forms are read, and which value is refused.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/http/api/api_request.hpp"

using namespace leasehold;
using namespace leasehold::http;
using Json = nlohmann::json;

namespace {

const ApiModel kMessagesModel{.name = "tiny", .max_context = 256};

std::expected<ApiRequest, ApiError> parsed_chat(Json body) {
  body["model"] = "tiny";
  return parse_api_request(Api::Chat, body.dump(), kMessagesModel);
}

}  // namespace

TEST_CASE("http api: messages keep the calls of tools and their results") {
  const Json call = {
      {"id", "c1"}, {"type", "function"}, {"function", {{"name", "add"}, {"arguments", "{}"}}}};
  const Json messages = {
      {{"role", "user"}, {"content", "1+1?"}},
      {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}},
      {{"role", "tool"}, {"tool_call_id", "c1"}, {"name", "add"}, {"content", "2"}},
      {{"role", "assistant"}, {"content", "2"}, {"reasoning_content", "Hm"}}};
  const auto request =
      parsed_chat({{"messages", messages}, {"chat_template_kwargs", {{"enable_thinking", false}}}});
  REQUIRE(request.has_value());
  const auto& sent = *request->submit.messages;
  REQUIRE(sent.size() == 4);
  CHECK_FALSE(sent[1].content.has_value());
  CHECK(Json::parse(sent[1].tool_calls) == Json::array({call}));
  CHECK(sent[2].tool_call_id == "c1");
  CHECK(sent[2].name == "add");
  CHECK(sent[3].reasoning_content == "Hm");
  CHECK(request->submit.chat_template_kwargs == R"({"enable_thinking":false})");
}

TEST_CASE("http api: a history may have null contents, parts, old calls and every known role") {
  const Json object = {{"x", 1}};
  const Json messages = {
      {{"role", "developer"}, {"content", "a"}},
      {{"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "b"}}}}},
      {{"role", "assistant"}, {"function_call", {{"name", "f"}, {"arguments", object}}}},
      {{"role", "function"}, {"name", "f"}, {"content", nullptr}},
      {{"role", "assistant"},
       {"content",
        {{{"type", "output_text"}, {"text", "c"}}, {{"type", "refusal"}, {"refusal", "d"}}}}},
      {{"role", "assistant"}, {"content", nullptr}, {"refusal", "e"}},
      {{"role", "assistant"},
       {"tool_calls", {{{"function", {{"name", "f"}, {"arguments", nullptr}}}}}}},
      {{"role", "tool"}, {"content", {{{"type", "text"}, {"text", "g"}}}}}};
  const auto request = parsed_chat({{"messages", messages}});
  REQUIRE(request.has_value());
  const auto& sent = *request->submit.messages;
  REQUIRE(sent.size() == 8);
  CHECK(sent[0].role == "developer");
  CHECK(sent[1].content == "b");
  CHECK_FALSE(sent[2].content.has_value());
  CHECK(Json::parse(sent[2].tool_calls)[0]["function"] ==
        Json{{"name", "f"}, {"arguments", object}});
  CHECK(sent[3].content == "");
  CHECK(sent[4].content == "cd");
  CHECK(sent[5].content == "e");
  CHECK(Json::parse(sent[6].tool_calls) == messages[6]["tool_calls"]);
  CHECK(sent[7].content == "g");
}

TEST_CASE("http api: a wrong value of a message is refused with its path") {
  const auto refused_value = [](const Json& message) {
    const auto request =
        parsed_chat({{"messages", {{{"role", "user"}, {"content", "a"}}, message}}});
    REQUIRE_FALSE(request.has_value());
    return request.error().param;
  };
  const Json image = {{"type", "image_url"}, {"image_url", {{"url", "x"}}}};
  const Json text = {{"type", "text"}, {"text", "a"}};
  CHECK(refused_value(5) == "messages/1");
  CHECK(refused_value({{"content", "a"}}) == "messages/1/role");
  CHECK(refused_value({{"role", "</s>"}, {"content", "a"}}) == "messages/1/role");
  CHECK(refused_value({{"role", "user"}, {"content", nullptr}}) == "messages/1/content");
  CHECK(refused_value({{"role", "user"}, {"content", 5}}) == "messages/1/content");
  CHECK(refused_value({{"role", "user"}, {"content", {text, image}}}) ==
        "messages/1/content/1/type");
  CHECK(refused_value({{"role", "tool"}, {"content", {{{"type", "text"}}}}}) ==
        "messages/1/content/0/text");
  CHECK(refused_value({{"role", "user"}, {"content", {text, "b"}}}) == "messages/1/content/1");
  CHECK(refused_value({{"role", "user"}, {"content", "a"}, {"name", 5}}) == "messages/1/name");
  CHECK(refused_value({{"role", "assistant"}, {"tool_calls", "x"}}) == "messages/1/tool_calls");
  CHECK(refused_value({{"role", "assistant"}, {"tool_calls", {5}}}) == "messages/1/tool_calls/0");
  const Json call = {{"function", {{"name", "f"}, {"arguments", 5}}}};
  CHECK(refused_value({{"role", "assistant"}, {"tool_calls", {call}}}) ==
        "messages/1/tool_calls/0/function/arguments");
}

TEST_CASE("http api: the variables of the template decide whether an answer begins in reasoning") {
  ApiModel model = kMessagesModel;
  const auto begins_inside = [&](Json body) {
    body["model"] = "tiny";
    body["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
    const auto request = parse_api_request(Api::Chat, body.dump(), model);
    REQUIRE(request.has_value());
    return request->begins_inside_reasoning;
  };
  CHECK_FALSE(begins_inside(Json::object()));
  model.begins_inside_reasoning = [](const std::string& kwargs) {
    return kwargs != R"({"enable_thinking":false})";
  };
  CHECK(begins_inside(Json::object()));
  CHECK_FALSE(begins_inside({{"chat_template_kwargs", {{"enable_thinking", false}}}}));
  CHECK_FALSE(begins_inside({{"add_generation_prompt", false}}));
}

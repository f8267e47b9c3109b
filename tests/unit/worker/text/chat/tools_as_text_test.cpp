// Tools, calls and results as texts of a chat whose template prints none of them.
#include "worker/text/chat/tools_as_text.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/text/chat/json_value.hpp"
#include "worker/text/chat/tool_calls.hpp"

using namespace leasehold;
using Catch::Matchers::Contains;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kPlain =
    "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}";
constexpr std::string_view kNoSystem =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('none') }}{% endif %}"
    "{{ m.role }}:{{ m.content }}\n{% endfor %}";

const jinja::Value kNone{jinja::None{}};

jinja::Value value_of(const std::string& json) {
  return value_from_json(Json::parse(json)).value();
}

ChatMessage calling(const std::string& calls, std::optional<std::string> content = {}) {
  return {.role = "assistant",
          .content = std::move(content),
          .more = {{"tool_calls", value_of(calls)}}};
}

std::vector<ChatMessage> rewritten(const std::vector<ChatMessage>& messages,
                                   const jinja::Value& tools = kNone,
                                   std::string_view source = kPlain) {
  const auto chat = ChatTemplate::parse(source, {});
  auto turns = tools_as_text(*chat, messages, tools);
  REQUIRE(turns.has_value());
  return *std::move(turns);
}

const ChatMessage kAsk{.role = "user", .content = "Ask"};

}  // namespace

TEST_CASE("tools as text: the calls that a model makes are read back from its history") {
  const auto turns = rewritten(
      {kAsk, calling(R"([{"id":"1","function":{"name":"get \"it\" now","arguments":{"a":"b\n"}}},
                         {"function":{"name":"stop","arguments":"{\"x\": [1, 2.0]}"}},
                         {"function":{"name":"go","arguments":{}}},
                         {"name":"old","arguments":null}])",
                     "I look.")});
  REQUIRE(turns.size() == 2);
  CHECK(turns[1].more.empty());
  ToolCallParser parser;
  auto read = parser.push(*turns[1].content);
  const auto rest = parser.finish();
  read.calls.insert(read.calls.end(), rest.calls.begin(), rest.calls.end());
  CHECK(read.text + rest.text == "I look.");
  CHECK(read.calls == std::vector<ToolCall>{{R"(get "it" now)", R"({"a":"b\n"})"},
                                            {"stop", R"({"x":[1,2.0]})"},
                                            {"go", "{}"},
                                            {"old", "{}"}});
}

TEST_CASE("tools as text: results are one turn of the user, with the message after them") {
  const ChatMessage result{.role = "tool", .content = "4", .more = {{"tool_call_id", kNone}}};
  const auto turns = rewritten({kAsk,
                                calling(R"([{"function":{"name":"f"}}])"),
                                result,
                                {.role = "tool"},
                                {.role = "user", .content = "And?"},
                                {.role = "user", .content = "Well?"}});
  REQUIRE(turns.size() == 4);
  CHECK(turns[2].role == "user");
  CHECK(turns[2].more.empty());
  CHECK(turns[2].content ==
        "<tool_response>\n4\n</tool_response>\n"
        "<tool_response>\n\n</tool_response>\nAnd?");
  CHECK(turns[3].content == "Well?");  // the client's own turns stay as they are
}

TEST_CASE("tools as text: the tools stand where the model reads them first") {
  const jinja::Value tools = value_of(
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},
          {"type":"function","function":{"name":"a b"}}])");
  const auto lines =
      "\n{\"name\": \"f\", \"parameters\": {\"type\": \"object\"}}\n"
      "{\"name\": \"a b\"}\n";
  const auto added = rewritten({kAsk}, tools);
  REQUIRE(added.size() == 2);
  CHECK(added[0].role == "system");
  CHECK_THAT(*added[0].content, Contains(lines) && Contains("<tool_call>\n{\"name\": "));
  const auto joined = rewritten({{.role = "system", .content = "Be brief."}, kAsk}, tools);
  REQUIRE(joined.size() == 2);
  CHECK(joined[0].content == "Be brief.\n\n" + *added[0].content);
  const auto inside = rewritten({kAsk}, tools, kNoSystem);
  REQUIRE(inside.size() == 1);
  CHECK(inside[0].content == *added[0].content + "\n\nAsk");
  const auto before = rewritten({{.role = "assistant", .content = "Hi"}}, tools, kNoSystem);
  REQUIRE(before.size() == 2);
  CHECK(before[0].role == "user");
}

TEST_CASE("tools as text: only a template that would leave something out needs it") {
  const auto needs = [](std::string_view source, const std::vector<ChatMessage>& messages,
                        const jinja::Value& tools) {
    return needs_tools_as_text(ChatTemplate::parse(source, {}).value(), messages, tools);
  };
  const jinja::Value tools = value_of(R"([{"type":"function","function":{"name":"f"}}])");
  const std::vector<ChatMessage> history{kAsk, calling(R"([{"function":{"name":"f"}}])")};
  const std::vector<ChatMessage> result{kAsk, {.role = "tool", .content = "4"}};
  const std::string knows = "{% if tools %}{{ tools | tojson }}{% endif %}" + std::string(kPlain);
  const std::string calls =
      "{% for m in messages %}{{ m.content or '' }}{{ m.tool_calls or '' }}{% endfor %}";
  CHECK_FALSE(needs(kPlain, {kAsk}, kNone));
  CHECK(needs(kPlain, {kAsk}, tools));
  CHECK(needs(kPlain, history, kNone));
  CHECK(needs(kPlain, result, kNone));
  CHECK_FALSE(needs(calls, history, kNone));
  CHECK(needs(calls, history, tools));
  CHECK_FALSE(needs(knows, history, tools));
  CHECK(needs("{# no tools #}" + std::string(kPlain), {kAsk}, tools));
}

TEST_CASE("tools as text: a call without a name is refused") {
  const auto chat = ChatTemplate::parse(kPlain, {});
  for (const char* calls : {R"([{"function":{}}])", R"([{}])", R"([{"function":{"name":5}}])"}) {
    const auto refused = tools_as_text(*chat, {kAsk, calling(calls)}, kNone);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == Errc::BadRequest);
    CHECK_THAT(refused.error().detail, Contains("has no function.name; send one"));
  }
}

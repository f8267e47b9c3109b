// The calls of tools and the thoughts in what a model says, in pieces of every size.
#include <catch2/catch.hpp>

#include "worker/text/chat/reasoning.hpp"
#include "worker/text/chat/tool_calls.hpp"

using namespace leasehold;

namespace {

using Calls = std::vector<ToolCall>;

void add(ToolCallParser::Output& all, const ToolCallParser::Output& more) {
  all.text += more.text;
  all.calls.insert(all.calls.end(), more.calls.begin(), more.calls.end());
}

void add(ReasoningParser::Output& all, const ReasoningParser::Output& more) {
  all.text += more.text;
  all.reasoning += more.reasoning;
}

/// The output of the parser, which is the same for pieces of every size.
template <class Parser>
Parser::Output in_pieces(const Parser& start, const std::string& text) {
  std::optional<typename Parser::Output> first;
  for (std::size_t size = 1; size <= text.size() + 1; ++size) {
    Parser parser = start;
    typename Parser::Output all;
    for (std::size_t at = 0; at < text.size(); at += size)
      add(all, parser.push(text.substr(at, size)));
    add(all, parser.finish());
    if (!first) first = all;
    REQUIRE(all == *first);
  }
  return *first;
}

ToolCallParser::Output parsed(const std::string& text, std::vector<std::string> tools = {}) {
  return in_pieces(ToolCallParser(std::move(tools)), text);
}

ReasoningParser::Output thought(const std::string& text, bool begins_inside = false) {
  return in_pieces(ReasoningParser(begins_inside), text);
}

}  // namespace

TEST_CASE("tool calls: those of Hermes and Qwen are found beside the text") {
  const auto all = parsed(
      "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"z\": \"a}\\\"b\", "
      "\"a\": "
      "[1]}}\n</tool_call>\n<tool_call>{\"name\":\"time\",\"arguments\":{}}</tool_call>\n");
  CHECK(all.text == "Let me see.");
  CHECK(all.calls == Calls{{"weather", R"({"z":"a}\"b","a":[1]})"}, {"time", "{}"}});
}

TEST_CASE("tool calls: a last call needs no end marker") {
  const auto all = parsed("<tool_call>{\"name\": \"f\", \"arguments\": {}}\n</tool");
  CHECK(all.text.empty());
  CHECK(all.calls == Calls{{"f", "{}"}});
}

TEST_CASE("tool calls: Mistral's are an array after a marker") {
  const auto all = parsed(
      R"([TOOL_CALLS] [{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": "{}"}])");
  CHECK(all.text.empty());
  CHECK(all.calls == Calls{{"f", R"({"x":1})"}, {"g", "{}"}});
}

TEST_CASE("tool calls: Llama's are objects at the beginning") {
  CHECK(parsed(R"({"name": "f", "parameters": {"x": "y"}})").calls == Calls{{"f", R"({"x":"y"})"}});
  CHECK(parsed(R"( <|python_tag|>{"name":"f","parameters":{}}; {"name":"g","parameters":{}})")
            .calls == Calls{{"f", "{}"}, {"g", "{}"}});
  const std::string later = R"(Yes: {"name": "f", "parameters": {}})";
  CHECK(parsed(later).text == later);
}

TEST_CASE("tool calls: what cannot be read stays text, and later calls are found") {
  for (const std::string text :
       {"<tool_call>", "<tool_call>no", "a < b <tool_cal", "<tool_call>{\"name\": 1}</tool_call>",
        "<tool_call>{\"name\":\"f\"}</tool_call>", "{\"answer\": 42}", "{ never closed",
        "[TOOL_CALLS][]", "<tool_call>{\"name\":\"f\",\"arguments\":[1]}</tool_call>", "  \n x  ",
        "{]", "; {}", "<tool_call>{\"name\":\"f\",\"arguments\":\"no\"}</tool_call>"}) {
    INFO(text);
    CHECK(parsed(text).text == text);
    CHECK(parsed(text).calls.empty());
  }
  const auto all =
      parsed("{\"a\": 1} <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call> ok");
  CHECK(all.text == "{\"a\": 1} ok");
  CHECK(all.calls == Calls{{"f", "{}"}});
}

TEST_CASE("tool calls: a call of a tool that the request does not have stays text") {
  const std::vector<std::string> tools{"f", "g"};
  const std::string other = R"(<tool_call>{"name":"h","arguments":{}}</tool_call>)";
  const std::string both =
      R"([TOOL_CALLS][{"name":"f","arguments":{}},{"name":"h","arguments":{}}])";
  const std::string bare = R"({"name": "Ann", "parameters": {}})";
  const std::string cut = R"(<tool_call>{"name":"h","arguments":{}})";
  for (const std::string& text : {other, both, bare, cut}) {
    CHECK(parsed(text, tools).text == text);
    CHECK(parsed(text, tools).calls.empty());
  }
  const auto mixed = parsed(other + R"(<tool_call>{"name":"g","arguments":{}}</tool_call>)", tools);
  CHECK(mixed.text == other);
  CHECK(mixed.calls == Calls{{"g", "{}"}});
}

TEST_CASE("tool calls: deep and endless values stay text") {
  for (const std::size_t levels : {10, 100}) {
    const std::string nested = std::string(levels, '[') + std::string(levels, ']');
    const std::string call = R"({"name":"f","arguments":"{\"a\":)" + nested + "}\"}";
    CHECK(ToolCallParser::calls_of(call).has_value() == (levels == 10));
  }
  const std::string deep = "<tool_call>" + std::string(500, '[') + std::string(500, ']');
  ToolCallParser parser;
  auto out = parser.push(deep);
  CHECK(out.text + parser.finish().text == deep);

  ToolCallParser endless;
  std::string text;
  std::size_t sent = 0;
  while (sent < 3 * ToolCallParser::kMaxCallBytes) {
    const std::string piece = sent == 0 ? "{" : "  \"x\"";
    text += endless.push(piece).text;
    sent += piece.size();
  }
  CHECK(text.size() > ToolCallParser::kMaxCallBytes);
  text += endless.finish().text;
  CHECK(text.size() == sent);
}

TEST_CASE("reasoning: thoughts are separate from what is said") {
  const auto all = thought("\n<think>\nHm, a < b.\n\n</think>\n\nHello </think>");
  CHECK(all.reasoning == "Hm, a < b.");
  CHECK(all.text == "Hello </think>");
  CHECK(thought("Hm.</think>Hello", true).reasoning == "Hm.");
  CHECK(thought("<think>never ends").reasoning == "never ends");
  CHECK(thought("<think></think>x").text == "x");
}

TEST_CASE("reasoning: a text that does not begin with thoughts is not changed") {
  for (const std::string text : {"", " ", "Hello <think>x</think>", "<thin", " <b", "  plain "}) {
    CHECK(thought(text).text == text);
    CHECK(thought(text).reasoning.empty());
  }
}

// The calls of tools and the thoughts in what a model says, in pieces of every size.
#include <array>
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

ToolCallParser::Output parsed(const std::string& text, std::vector<CalledTool> tools = {}) {
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

TEST_CASE("tool calls: Qwen 3.5 and Nemotron write parameters between tags") {
  const std::vector<CalledTool> tools{{.name = "find", .text_parameters = {"what"}}};
  const auto all = parsed(
      "I look.\n\n<tool_call>\n<function=find>\n<parameter=what>\n42\nor </b>\n</parameter>\n"
      "<parameter=limit>\n3\n</parameter>\n<parameter=exact>\nTrue\n</parameter>\n"
      "<parameter=more>\n{\"z\": [1], \"a\": null}\n</parameter>\n<parameter=where>\nin Oslo\n"
      "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=find>\n</function>\n"
      "</tool_call>",
      tools);
  CHECK(all.text == "I look.");
  CHECK(all.calls == Calls{{"find", R"({"what":"42\nor </b>","limit":3,"exact":true,)"
                                    R"("more":{"z":[1],"a":null},"where":"in Oslo"})"},
                           {"find", "{}"}});
  CHECK(parsed("<tool_call><function=find><parameter=what>7</parameter></function>").calls ==
        Calls{{"find", R"({"what":7})"}});
}

TEST_CASE("tool calls: GLM writes keys and values between tags") {
  const std::vector<CalledTool> tools{{.name = "weather", .text_parameters = {"city"}},
                                      {.name = "now"}};
  const std::string lines =
      "\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>1</arg_value>\n"
      "<arg_key>days</arg_key>\n<arg_value>[1, 2]</arg_value>\n</tool_call>"
      "\n<tool_call>now\n</tool_call>";
  const std::string line =
      "<tool_call>weather<arg_key>city</arg_key><arg_value>1</arg_value><arg_key>days</arg_key>"
      "<arg_value>[1, 2]</arg_value></tool_call><tool_call>now</tool_call>";
  for (const std::string& text : {lines, line}) {
    CHECK(parsed(text, tools).calls ==
          Calls{{"weather", R"({"city":"1","days":[1,2]})"}, {"now", "{}"}});
    CHECK(parsed(text, tools).text.empty());
  }
}

TEST_CASE("tool calls: MiniMax and DeepSeek V3.2 invoke functions within a section") {
  const auto minimax = parsed(
      "Yes.\n<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">x \"y\"</parameter>\n"
      "<parameter name=\"n\">1.5</parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n"
      "</minimax:tool_call>");
  CHECK(minimax.text == "Yes.");
  CHECK(minimax.calls == Calls{{"f", R"({"a":"x \"y\"","n":1.5})"}, {"g", "{}"}});
  const auto deepseek = parsed(
      "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n"
      "<｜DSML｜parameter name=\"a\" string=\"true\">1</｜DSML｜parameter>\n"
      "<｜DSML｜parameter name=\"n\" string=\"false\">[1]</｜DSML｜parameter>\n"
      "</｜DSML｜invoke>\n</｜DSML｜function_calls>");
  CHECK(deepseek.text.empty());
  CHECK(deepseek.calls == Calls{{"f", R"({"a":"1","n":[1]})"}});
}

TEST_CASE("tool calls: DeepSeek and Kimi write names before JSON") {
  const auto v3 = parsed(
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"x\": 1}\n```"
      "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```"
      "<｜tool▁call▁end｜><｜tool▁calls▁end｜>");
  CHECK(v3.text.empty());
  CHECK(v3.calls == Calls{{"f", R"({"x": 1})"}, {"g", "{}"}});
  CHECK(parsed("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"x\":\"```\"}"
               "<｜tool▁call▁end｜><｜tool▁calls▁end｜>")
            .calls == Calls{{"f", R"({"x":"```"})"}});
  const auto kimi = parsed(
      "Hm.<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
      "{\"x\": 1}<|tool_call_end|><|tool_call_begin|>functions.a.b:1<|tool_call_argument_begin|>{}"
      "<|tool_call_end|><|tool_calls_section_end|>");
  CHECK(kimi.text == "Hm.");
  CHECK(kimi.calls == Calls{{"f", R"({"x": 1})"}, {"a.b", "{}"}});
}

TEST_CASE("tool calls: Ministral, Command R and Granite write JSON after their markers") {
  CHECK(parsed("[TOOL_CALLS]f[ARGS]{\"x\": \"}\"}[TOOL_CALLS]g[CALL_ID]abc[ARGS]{}").calls ==
        Calls{{"f", R"({"x": "}"})"}, {"g", "{}"}});
  CHECK(parsed("<|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": \"f\", "
               "\"parameters\": {\"x\": 1}}\n]<|END_ACTION|>")
            .calls == Calls{{"f", R"({"x":1})"}});
  for (const std::string end : {"", "<|/tool_call|>"}) {
    const auto all = parsed("<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]" + end);
    CHECK(all.calls == Calls{{"f", "{}"}});
    CHECK(all.text.empty());
  }
}

TEST_CASE("tool calls: LFM2 writes calls of Python, Gemma 4 its own literals") {
  const auto lfm2 = parsed(
      "<|tool_call_start|>[f(city=\"O'slo\\n\", n=-1.5e3, ok=True, none=None, "
      "more={'a': [1, 'x']}), g()]<|tool_call_end|>Done");
  CHECK(lfm2.text == "Done");
  CHECK(lfm2.calls ==
        Calls{{"f", R"({"city":"O'slo\n","n":-1500.0,"ok":true,"none":null,"more":{"a":[1,"x"]}})"},
              {"g", "{}"}});
  const auto gemma = parsed(
      "<|tool_call>call:f{city:<|\"|>Os\"lo<|\"|>,list:[1,<|\"|>a<|\"|>],more:{a:true,b:null}}"
      "<tool_call|><|tool_call>call:g{}<tool_call|>");
  CHECK(gemma.text.empty());
  CHECK(
      gemma.calls ==
      Calls{{"f", R"({"city":"Os\"lo","list":[1,"a"],"more":{"a":true,"b":null}})"}, {"g", "{}"}});
  const std::string deep(100, '[');
  for (const std::string& text :
       {"<|tool_call_start|>[f(x=" + deep + std::string(100, ']') + ")]<|tool_call_end|>",
        std::string("<|tool_call_start|>[f(x=)]<|tool_call_end|>"),
        std::string("<|tool_call_start|>[f(1)]<|tool_call_end|>"),
        std::string("<|tool_call_start|>[f(x='\\ud800')]<|tool_call_end|>"),
        std::string("<|tool_call>call:f{city:Oslo}<tool_call|>")}) {
    CHECK(parsed(text).text == text);
    CHECK(parsed(text).calls.empty());
  }
}

TEST_CASE("tool calls: each call of a section is returned when it ends") {
  ToolCallParser parser;
  CHECK(
      parser.push("<|tool_calls_section_begin|>\n<|tool_call_begin|>functions.f:0").calls.empty());
  CHECK(parser.push("<|tool_call_argument_begin|>{}<|tool_call_end|>").calls.size() == 1);
  CHECK(
      parser.push("<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}").calls.empty());
  CHECK(parser.push("<|tool_call_end|>").calls == Calls{{"g", "{}"}});
  CHECK(parser.push("<|tool_calls_section_end|> after").text == " after");
}

TEST_CASE("tool calls: a marker in prose does not hold back the text") {
  for (const std::string prose :
       {"Write <tool_call> before a call", "A <tool_call><b>x</b>", "<tool_call>a<arg_kex>"}) {
    ToolCallParser parser;
    CHECK(parser.push(prose).text == prose);
  }
}

TEST_CASE("tool calls: hostile markers take linear time") {
  for (const std::string unit :
       {"<tool_call>f<arg_key>", "[TOOL_CALLS]", "<|tool_call>", "<minimax:tool_call>"}) {
    std::string text;
    while (text.size() < 300'000) text += unit;
    ToolCallParser whole, pieces;
    CHECK((whole.push(text).text.size() + whole.finish().text.size() == text.size()));
    std::size_t said = 0;
    for (std::size_t at = 0; at < text.size(); at += 5)
      said += pieces.push(text.substr(at, 5)).text.size();
    CHECK((said + pieces.finish().text.size() == text.size()));
  }
}

TEST_CASE("tool calls: the members of one call are not compared with each other") {
  for (const auto& [begin, member, end] : std::vector<std::array<std::string, 3>>{
           {"<|tool_call>call:f{", "#:1,", "}<tool_call|>"},
           {"<|tool_call_start|>[f(", "a#=1,", ")]<|tool_call_end|>"},
           {"<tool_call>f", "<arg_key>#</arg_key><arg_value>1</arg_value>", "</tool_call>"},
           {R"(<tool_call>{"name":"f","arguments":{"x":0)", ",\"#\":1", "}}</tool_call>"},
           {R"(<tool_call>{"name":"f","arguments":{"x":[0)", ",{}", "]}}</tool_call>"}}) {
    std::string text = begin;
    for (int i = 0; text.size() + 100 < ToolCallParser::kMaxCallBytes; ++i) {
      std::string next = member;
      if (const auto at = next.find('#'); at != std::string::npos)
        next.replace(at, 1, std::to_string(i));
      text += next;
    }
    INFO(member);
    ToolCallParser parser;
    CHECK(parser.push(text + end).calls.size() == 1);  // quadratic time would be 10^9 comparisons
  }
}

TEST_CASE("tool calls: what cannot be read stays text, and later calls are found") {
  for (const std::string text :
       {"<tool_call>", "<tool_call>no", "a < b <tool_cal", "<tool_call>{\"name\": 1}</tool_call>",
        "<tool_call>{\"name\":\"f\"}</tool_call>", "{\"answer\": 42}", "{ never closed",
        "[TOOL_CALLS][]", "[TOOL_CALLS]f[ARGS]no", "<tool_call>f\n<arg_key>a</tool_call>",
        "<|tool_call_begin|>f:0<|tool_call_end|>", "<minimax:tool_call>no</minimax:tool_call>",
        "<invoke name=\"f\"><parameter name=\"a\"></invoke>",
        "<tool_call>{\"name\":\"f\",\"arguments\":[1]}</tool_call>", "  \n x  ", "{]", "; {}",
        "<tool_call>{\"name\":\"f\",\"arguments\":\"no\"}</tool_call>"}) {
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
  const std::vector<CalledTool> tools{{.name = "f"}, {.name = "g"}};
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
    CHECK(json_calls(call).has_value() == (levels == 10));
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

TEST_CASE("reasoning: each family's markers are found") {
  for (const std::string text :
       {"[THINK]Hm.[/THINK]Hello", "<|START_THINKING|>Hm.<|END_THINKING|>Hello",
        "<|channel>thought\nHm.\n<channel|>Hello"}) {
    CHECK(thought(text).reasoning == "Hm.");
    CHECK(thought(text).text == "Hello");
  }
  CHECK(thought("Hm.[/THINK]Hello", true).reasoning == "Hm.");
  CHECK(thought("<think>a [/THINK] b</think>c").reasoning == "a [/THINK] b");
  CHECK(ends_inside_reasoning("<|im_start|>assistant\n<think>\n"));
  CHECK(ends_inside_reasoning("<|START_THINKING|>"));
  CHECK_FALSE(ends_inside_reasoning("<think>\n\n</think>\n\n"));
  CHECK_FALSE(ends_inside_reasoning(""));
}

TEST_CASE("reasoning: a text that does not begin with thoughts is not changed") {
  for (const std::string text : {"", " ", "Hello <think>x</think>", "<thin", " <b", "  plain "}) {
    CHECK(thought(text).text == text);
    CHECK(thought(text).reasoning.empty());
  }
}

#include "worker/text/chat/harmony.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

namespace {

using Divided = HarmonyParser::Output;

/// The result for a turn in pieces of `size` bytes.
Divided divided(std::string_view turn, std::size_t size, std::vector<std::string> tools) {
  HarmonyParser parser(std::move(tools));
  Divided all;
  const auto add = [&](Divided out) {
    all.reasoning += out.reasoning;
    all.text += out.text;
    for (ToolCall& call : out.calls) all.calls.push_back(std::move(call));
  };
  for (std::size_t at = 0; at < turn.size(); at += size) add(parser.push(turn.substr(at, size)));
  add(parser.finish());
  return all;
}

/// The same result for pieces of any size.
Divided divided(std::string_view turn, const std::vector<std::string>& tools = {}) {
  const Divided whole = divided(turn, turn.size() + 1, tools);
  for (const std::size_t size : {1, 2, 3, 7, 20}) CHECK(divided(turn, size, tools) == whole);
  return whole;
}

}  // namespace

TEST_CASE("harmony: analysis is reasoning, and the final channel is the text") {
  CHECK(divided("<|channel|>analysis<|message|>Two and two.<|end|>"
                "<|start|>assistant<|channel|>final<|message|>4.\nOr four.<|return|>") ==
        Divided{.reasoning = "Two and two.", .text = "4.\nOr four.", .calls = {}});
  // The end markers are not delivered, because they end the turn.
  CHECK(divided("<|channel|>final<|message|>Hi") ==
        Divided{.reasoning = {}, .text = "Hi", .calls = {}});
  CHECK(divided("<|channel|>analysis<|message|>a <|end|><|start|>assistant<|channel|>analysis"
                "<|message|>b<|end|><|start|>assistant<|channel|>commentary<|message|>c<|end|>"
                "<|start|>assistant<|channel|>final<|message|>d") ==
        Divided{.reasoning = "a\n\nb", .text = "c\n\nd", .calls = {}});
}

TEST_CASE("harmony: a body for a function is a call, wherever its header names it") {
  const ToolCall call{.name = "get_weather", .arguments = R"({"city": "Oslo"})"};
  CHECK(divided(
            "<|channel|>analysis<|message|>Ask.<|end|><|start|>assistant<|channel|>commentary"
            " to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Oslo\"}<|call|>") ==
        Divided{.reasoning = "Ask.", .text = {}, .calls = {call}});
  CHECK(divided(
            " to=functions.get_weather<|channel|>commentary json<|message|>{\"city\": \"Oslo\"}") ==
        Divided{.reasoning = {}, .text = {}, .calls = {call}});
  for (const char* end : {"", " <|call|>"})
    CHECK(divided(std::string("<|channel|>commentary to=functions.now<|message|>") + end).calls ==
          std::vector<ToolCall>{{.name = "now", .arguments = "{}"}});
}

TEST_CASE("harmony: what is not a call of a known tool stays text") {
  const std::vector<std::string> tools{"known"};
  CHECK(divided("<|channel|>commentary to=functions.other<|message|>{}<|call|>", tools) ==
        Divided{.reasoning = {}, .text = "{}", .calls = {}});
  CHECK(divided("<|channel|>commentary to=functions.known<|message|>{\"a\": <|call|>", tools) ==
        Divided{.reasoning = {}, .text = "{\"a\":", .calls = {}});
  CHECK(divided("<|channel|>commentary to=functions.known<|message|>[1]", tools).calls.empty());
  CHECK(divided("<|channel|>analysis to=python<|message|>1+1<|call|>", tools) ==
        Divided{.reasoning = "1+1", .text = {}, .calls = {}});
  const std::string large(ToolCallParser::kMaxCallBytes, 'x');
  CHECK(divided("<|channel|>commentary to=functions.known<|message|>{\"a\":\"" + large + "\"}",
                4096, tools)
            .calls.empty());
}

TEST_CASE("harmony: a turn without a header is text, and an unfinished header is dropped") {
  CHECK(divided("{\"a\": 1}") == Divided{.reasoning = {}, .text = "{\"a\": 1}", .calls = {}});
  CHECK(divided("to be") == Divided{.reasoning = {}, .text = "to be", .calls = {}});
  CHECK(divided("<|cha") == Divided{.reasoning = {}, .text = "<|cha", .calls = {}});
  CHECK(divided("<|channel|>anal") == Divided{});
  CHECK(divided("") == Divided{});
  CHECK(divided(" \n") == Divided{});
  const std::string header = "<|channel|>" + std::string(HarmonyParser::kMaxHeaderBytes, 'x');
  CHECK(divided(header, 64, {}).text == header.substr(std::string("<|channel|>").size()));
}

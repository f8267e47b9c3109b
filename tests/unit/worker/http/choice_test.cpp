// The tokens of a choice become text, thoughts and calls of tools.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/tiny_tokenizer.hpp"
#include "tests/unit/worker/text/tokenizer/byte_vocabulary.hpp"
#include "worker/http/api/choice_text.hpp"

using namespace leasehold;
using namespace leasehold::http;
using Json = nlohmann::json;

namespace {

ApiRequest chat(ToolForm form) {
  ApiRequest request{.api = Api::Chat, .tool_form = form, .tool_name = "add"};
  request.submit.messages.emplace();
  return request;
}

/// A choice whose tokens have these texts.
ChoicePart said(const ApiRequest& request, const std::vector<std::string>& texts,
                std::string_view reason = "EndOfSequence") {
  const Tokenizer tokenizer = testing::tiny_tokenizer();
  ChoiceText text(3, request, request.submit, tokenizer);
  ChoicePart whole;
  for (const std::string& one : texts) append(whole, text.add({.text = one}));
  append(whole, text.end("", reason));
  CHECK(whole.index == 3);
  return whole;
}

}  // namespace

TEST_CASE("choice: calls end a chat with the reason tool_calls, and thoughts are separate") {
  const auto whole =
      said(chat(ToolForm::Marked), {"<think>Hm</th", "ink>Ok <tool_",
                                    "call>{\"name\":", "\"add\",\"arguments\":{}}</tool_call>"});
  CHECK(whole.reasoning == "Hm");
  CHECK(whole.text == "Ok");
  REQUIRE(whole.calls.size() == 1);
  CHECK(whole.calls[0].call == ToolCall{"add", "{}"});
  CHECK(whole.calls[0].id.starts_with("call_"));
  CHECK(whole.finish_reason == "tool_calls");
}

TEST_CASE("choice: a replay gives each call the id that it had") {
  ApiRequest request = chat(ToolForm::Marked);
  request.submit.request_id = {"r"};
  const std::string call = R"(<tool_call>{"name":"add","arguments":{}}</tool_call>)";
  const auto whole = said(request, {call, call});
  const auto replay = said(request, {call + call});
  REQUIRE(whole.calls.size() == 2);
  REQUIRE(replay.calls.size() == 2);
  CHECK(whole.calls[0].id == "call_r.3_0");
  CHECK(whole.calls[1].id == "call_r.3_1");
  for (std::size_t i = 0; i < 2; ++i) CHECK(replay.calls[i].id == whole.calls[i].id);
}

TEST_CASE("choice: markers that are control tokens are found by their names") {
  constexpr std::string_view kNames[] = {"[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]"};
  std::vector<testing::NamedToken> names;
  for (const std::string_view name : kNames)
    names.push_back({std::string(name), testing::kControl});
  const auto tokenizer = testing::tokenizer_of(testing::byte_vocabulary({}, names));
  REQUIRE(tokenizer.has_value());
  const ApiRequest request = chat(ToolForm::Marked);
  ChoiceText text(0, request, request.submit, *tokenizer);
  ChoicePart whole;
  for (const std::int32_t token :
       std::initializer_list<std::int32_t>{256, 'H', 257, 'O', 258, 'f', 259, '{', '}'})
    append(whole, text.add({.token = token, .text = std::string(tokenizer->piece(token))}));
  append(whole, text.end("", "EndOfSequence"));
  CHECK(whole.reasoning == "H");
  CHECK(whole.text == "O");
  REQUIRE(whole.calls.size() == 1);
  CHECK(whole.calls[0].call == ToolCall{"f", "{}"});
}

TEST_CASE("choice: without parallel calls only the first one counts") {
  ApiRequest request = chat(ToolForm::Marked);
  request.parallel_tool_calls = false;
  const std::string call = R"(<tool_call>{"name":"add","arguments":{}}</tool_call>)";
  CHECK(said(request, {call, call}).calls.size() == 1);
  CHECK(said(request, {call + call}).calls.size() == 1);
}

TEST_CASE("choice: only the tools of the request are called") {
  ApiRequest request = chat(ToolForm::Marked);
  request.called_tools = {{.name = "add"}};
  const std::string call = R"(<tool_call>{"name":"sub","arguments":{}}</tool_call>)";
  CHECK(said(request, {call}).text == call);
  CHECK(said(request, {call}).finish_reason == "stop");
}

TEST_CASE("choice: without tools, and in a completion, the text is not searched for calls") {
  const std::string call = "<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>";
  CHECK(said(chat(ToolForm::None), {call}).text == call);
  CHECK(said(chat(ToolForm::None), {call}).finish_reason == "stop");
  ApiRequest completion;
  completion.submit.prompt = "The";
  completion.echo = true;
  const auto whole = said(completion, {"<think>", call});
  CHECK(whole.text == "The<think>" + call);
  CHECK(whole.reasoning.empty());
}

TEST_CASE("choice: a text that a schema forces is one call; one that is cut off stays text") {
  const auto named = said(chat(ToolForm::Arguments), {"{\"x\"", ":1}"});
  REQUIRE(named.calls.size() == 1);
  CHECK(named.calls[0].call == ToolCall{"add", R"({"x":1})"});
  CHECK(named.text.empty());
  const auto any = said(chat(ToolForm::Call), {R"({"name":"sub",)", R"("arguments":{}})"});
  REQUIRE(any.calls.size() == 1);
  CHECK(any.calls[0].call.name == "sub");
  const auto cut = said(chat(ToolForm::Arguments), {"{\"x\""}, "MaxTokensReached");
  CHECK(cut.calls.empty());
  CHECK(cut.text == "{\"x\"");
  CHECK(cut.finish_reason == "length");
}

TEST_CASE("choice: the stop string is the one that follows the text") {
  const auto tokenizer = testing::tokenizer_of(testing::byte_vocabulary({}, {}));
  REQUIRE(tokenizer.has_value());
  ApiRequest request = chat(ToolForm::None);
  request.submit.sampling.stop.all = {"b", "cde", "cd"};
  const auto end_of = [&](std::string_view reason) {
    ChoiceText text(0, request, request.submit, *tokenizer);
    (void)text.add({.token = 'a', .text = "a"});
    (void)text.add({.token = 'c', .text = ""});
    (void)text.add({.token = 'd', .text = ""});
    return text.end("", reason);
  };
  CHECK(end_of("StopSequence").stop == "cd");
  CHECK(end_of("EndOfSequence").stop.empty());
  request.submit.sampling.stop.all = {"b"};  // a stop token ended the text
  CHECK(end_of("StopSequence").stop.empty());
}

TEST_CASE("choice: a marker without a text keeps its place beside text that is held back") {
  const auto tokenizer = testing::tokenizer_of(
      testing::byte_vocabulary({}, {{"<think>", 3}, {"</think>", 3}, {"<tool_call>", 3}}));
  REQUIRE(tokenizer.has_value());
  constexpr TokenId kThink = 256, kEndThink = 257, kCall = 258;
  const ApiRequest request = chat(ToolForm::Marked);
  ChoiceText text(0, request, request.submit, *tokenizer);
  ChoicePart whole;
  const auto add = [&](TokenId token, std::string arrived) {
    append(whole, text.add({.token = token, .text = std::move(arrived)}));
  };
  add(kThink, "");
  add('H', "");  // may begin a stop string
  add(kEndThink, "");
  add('m', "Hm");
  add('o', "");
  add(kCall, "");
  append(whole, text.end("o", "EndOfSequence"));
  CHECK(whole.reasoning == "H");
  CHECK(whole.text == "mo<tool_call>");
}

TEST_CASE("choice: the channels of a harmony model become thoughts, text and calls") {
  const std::vector<std::string> names{"<|start|>", "<|channel|>", "<|message|>",
                                       "<|end|>",   "<|return|>",  "<|call|>"};
  std::vector<testing::NamedToken> controls;
  for (const std::string& name : names) controls.push_back({name, 3});
  const auto tokenizer = testing::tokenizer_of(testing::byte_vocabulary({}, controls));
  REQUIRE(tokenizer.has_value());
  const auto answer = [&](ToolForm form, const std::vector<std::string>& tokens) {
    ApiRequest request = chat(form);
    request.called_tools = {{.name = "add"}};
    ChoiceText text(0, request, request.submit, *tokenizer);
    ChoicePart whole;
    for (const std::string& token : tokens) {
      const auto name = std::ranges::find(names, token);
      if (name != names.end()) {
        append(whole, text.add({.token = static_cast<TokenId>(256 + (name - names.begin()))}));
        continue;
      }
      for (const char c : token) append(whole, text.add({.token = c, .text = std::string(1, c)}));
    }
    append(whole, text.end("", "EndOfSequence"));
    return whole;
  };
  const std::vector<std::string> thought{"<|channel|>", "analysis",  "<|message|>", "Hm",
                                         "<|end|>",     "<|start|>", "assistant"};
  std::vector<std::string> call = thought;
  call.insert(call.end(),
              {"<|channel|>", "commentary to=functions.add json", "<|message|>", R"({"a":1})"});
  const auto called = answer(ToolForm::Marked, call);
  CHECK(called.reasoning == "Hm");
  CHECK(called.text.empty());
  REQUIRE(called.calls.size() == 1);
  CHECK(called.calls[0].call == ToolCall{"add", R"({"a":1})"});
  CHECK(called.finish_reason == "tool_calls");
  CHECK(answer(ToolForm::None, call).text == R"({"a":1})");
  std::vector<std::string> said = thought;
  said.insert(said.end(), {"<|channel|>", "final", "<|message|>", "Hi!"});
  const auto plain = answer(ToolForm::None, said);
  CHECK(plain.reasoning == "Hm");
  CHECK(plain.text == "Hi!");
  CHECK(plain.finish_reason == "stop");
}

TEST_CASE("choice: an echoed prompt has its logprobs and offsets before those of the text") {
  const auto tokenizer = testing::tokenizer_of(testing::byte_vocabulary({}, {{"<s>", 3}}));
  REQUIRE(tokenizer.has_value());
  constexpr TokenId kBegin = 256;
  ApiRequest request;
  request.echo = true;
  request.prompt_logprobs = true;
  request.submit.prompt = "hi";
  request.submit.sampling.logprobs = true;
  ChoiceText text(0, request, request.submit, *tokenizer);
  // A tokenizer may put a control token and a space before the text.
  text.add({.position = 0, .tokens = {{.token = kBegin}, {' ', -1.0f, {}}}});
  text.add(
      {.position = 2, .tokens = {{'h', -2.0f, {{'x', -0.5f}, {'h', -2.0f}}}, {'i', -3.0f, {}}}});
  const ChoicePart part = text.add({.token = '!', .text = "!", .logprob = -4.0f});
  CHECK(part.text == "hi!");
  std::string shown;
  for (const TokenLogprobs& each : part.logprobs)
    shown += each.token.text + "@" + std::to_string(each.text_offset) + " ";
  CHECK(shown == "<s>@0  @0 h@0 i@1 !@2 ");
  CHECK(part.logprobs[0].is_first);
  CHECK(part.logprobs[2].token.logprob == -2.0f);
  CHECK(part.logprobs[2].top[0].text == "x");
  REQUIRE(part.prompt_logprobs.size() == 4);
  CHECK(part.prompt_logprobs[0].empty());
  REQUIRE(part.prompt_logprobs[2].size() == 2);
  CHECK(part.prompt_logprobs[2][0].token == 'h');
  CHECK(part.prompt_logprobs[2][0].rank == 2);
  CHECK(part.prompt_logprobs[2][1].rank == 1);
  CHECK(part.prompt_logprobs[3][0].rank == 0);
  CHECK(text.end("", "MaxTokensReached").logprobs.empty());
}

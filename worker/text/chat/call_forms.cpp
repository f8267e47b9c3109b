#include "worker/text/chat/call_forms.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/ordered_json.hpp"
#include "worker/text/chat/call_literals.hpp"
#include "worker/text/chat/text_marker.hpp"

namespace leasehold {
namespace {

using Json = nlohmann::ordered_json;  // arguments keep their order
using Calls = std::optional<std::vector<ToolCall>>;

constexpr int kMaxCallDepth = 64;
constexpr std::string_view kSeparator = "<｜tool▁sep｜>";
constexpr std::string_view kFunction = "<function=";
constexpr std::size_t kMaxNameBytes = 256;

/// Nothing for a text that is not JSON, or that nests more levels than callers may recurse.
std::optional<Json> parse_shallow(std::string_view text) {
  auto json = parse_ordered_json(text);
  if (!json || nests_deeper_than(kMaxCallDepth, *json)) return std::nullopt;
  return *std::move(json);
}

bool is_object(std::string_view text) {
  const auto json = parse_shallow(text);
  return json && json->is_object();
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kWhitespace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhitespace) + 1 - first);
}

/// Cuts off and returns the text before `mark`; nothing without one.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + mark.size());
  return before;
}

bool take(std::string_view& text, std::string_view mark) {
  const std::string_view rest = trimmed(text);
  if (!rest.starts_with(mark)) return false;
  text = rest.substr(mark.size());
  return true;
}

std::optional<ToolCall> call_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  auto name = json.find("name");
  if (name == json.end()) name = json.find("tool_name");
  if (name == json.end() || !name->is_string() || name->get_ref<const std::string&>().empty())
    return std::nullopt;
  auto arguments = json.find("arguments");
  if (arguments == json.end()) arguments = json.find("parameters");
  if (arguments == json.end()) return std::nullopt;
  if (arguments->is_string())  // the object is sent as text
    return named_call(name->get_ref<const std::string&>(),
                      arguments->get_ref<const std::string&>());
  if (!arguments->is_object()) return std::nullopt;
  return ToolCall{.name = *name, .arguments = text_of(*arguments)};
}

Calls only(std::optional<ToolCall> call) {
  if (!call) return std::nullopt;
  return std::vector<ToolCall>{*std::move(call)};
}

// ------------------------------------------------------------------ parameters between tags

/// How a family writes a parameter: key_begin K key_end [value_begin] V value_end.
struct ParameterTags {
  std::string_view key_begin, key_end, value_begin, value_end;
};

constexpr ParameterTags kQwenTags = {"<parameter=", ">", "", "</parameter>"};
constexpr ParameterTags kGlmTags = {"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"};
constexpr ParameterTags kMiniMaxTags = {"<parameter name=\"", "\">", "", "</parameter>"};
constexpr ParameterTags kDeepSeekTags = {"<｜DSML｜parameter name=\"", "\">", "",
                                         "</｜DSML｜parameter>"};

bool is_text_parameter(std::span<const CalledTool> tools, std::string_view tool,
                       std::string_view parameter) {
  const auto found = std::ranges::find(tools, tool, &CalledTool::name);
  return found != tools.end() &&
         std::ranges::find(found->text_parameters, parameter) != found->text_parameters.end();
}

/// A value that the form writes without quotes: JSON, a word of Python, or else a text.
Json value_of(std::string_view written, bool is_text) {
  if (is_text) return written;
  const std::string_view word = trimmed(written);
  if (word == "True" || word == "False") return word == "True";
  if (word == "None") return nullptr;
  return parse_shallow(word).value_or(Json(written));
}

std::string_view without_lines(std::string_view value) {
  if (value.starts_with('\n')) value.remove_prefix(1);
  if (value.ends_with('\n')) value.remove_suffix(1);
  return value;
}

std::optional<ToolCall> tagged_call(std::string_view name, std::string_view body,
                                    const ParameterTags& tags, std::span<const CalledTool> tools) {
  std::vector<std::pair<std::string, Json>> arguments;
  while (take(body, tags.key_begin)) {
    auto key = take_until(body, tags.key_end);
    if (!key || (!tags.value_begin.empty() && !take(body, tags.value_begin))) return std::nullopt;
    const auto value = take_until(body, tags.value_end);
    if (!value) return std::nullopt;
    // DeepSeek V3.2 says in the tag whether the value is a text: K" string="true
    const auto kind = key->find("\" string=\"");
    const bool is_text = kind == std::string_view::npos ? is_text_parameter(tools, name, *key)
                                                        : key->ends_with("true");
    arguments.emplace_back(key->substr(0, kind), value_of(without_lines(*value), is_text));
  }
  if (name.empty() || !trimmed(body).empty()) return std::nullopt;
  return ToolCall{.name = std::string(name),
                  .arguments = text_of(ordered_object(std::move(arguments)))};
}

/// Qwen's or GLM's form.
Calls read_tagged(std::string_view body, std::span<const CalledTool> tools) {
  if (take(body, kFunction)) {
    const auto name = take_until(body, ">");
    body = trimmed(body);
    if (body.ends_with("</function>")) body.remove_suffix(std::string_view("</function>").size());
    return name ? only(tagged_call(trimmed(*name), body, kQwenTags, tools)) : std::nullopt;
  }
  body = trimmed(body);
  const std::string_view name = body.substr(0, body.find_first_of("< \t\r\n"));
  return only(tagged_call(name, body.substr(name.size()), kGlmTags, tools));
}

/// A tag of Qwen, or a name before the end or a tag of GLM. JSON is read elsewhere. The answer for
/// a text holds for each longer one if it is false.
bool may_be_tagged(std::string_view begun) {
  const auto first = std::min(begun.find_first_not_of(kWhitespace), begun.size());
  if (first > kMaxHeldBytes) return false;
  const std::string_view text = begun.substr(first);
  if (text.starts_with('<')) return kFunction.starts_with(text.substr(0, kFunction.size()));
  const auto name_end = text.substr(0, kMaxNameBytes).find_first_of("< \t\r\n");
  if (name_end == std::string_view::npos) return text.size() < kMaxNameBytes;
  const std::string_view after = text.substr(name_end);
  const auto next = std::min(after.find_first_not_of(kWhitespace), after.size());
  const std::string_view tag = after.substr(next);
  const auto may_become = [&](std::string_view other) {
    return other.starts_with(tag.substr(0, other.size()));
  };
  return next <= kMaxHeldBytes && (may_become(kGlmTags.key_begin) || may_become("</tool_call>"));
}

/// The rest of `<invoke name=`: "N">…
template <const ParameterTags& tags>
Calls read_invoke(std::string_view body, std::span<const CalledTool> tools) {
  if (!take(body, "\"")) return std::nullopt;
  const auto name = take_until(body, "\">");
  return name ? only(tagged_call(*name, body, tags, tools)) : std::nullopt;
}

// ------------------------------------------------------------------ names before JSON

/// N<｜tool▁sep｜>{…}, or with a fence: function<｜tool▁sep｜>N\n```json\n{…}\n```
Calls read_deepseek(std::string_view body, std::span<const CalledTool> /*tools*/) {
  auto name = take_until(body, kSeparator);
  if (!name) return std::nullopt;
  if (std::string_view rest = body; const auto fenced = take_until(rest, "```json")) {
    name = *fenced;
    const auto json = take_until(rest, "```");
    body = json ? *json : rest;
  }
  return only(named_call(trimmed(*name), body));
}

/// functions.N:0<|tool_call_argument_begin|>{…}
Calls read_kimi(std::string_view body, std::span<const CalledTool> /*tools*/) {
  constexpr std::string_view kPrefix = "functions.";
  const auto id = take_until(body, "<|tool_call_argument_begin|>");
  if (!id) return std::nullopt;
  std::string_view name = trimmed(*id);
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return only(named_call(name.substr(0, name.rfind(':')), body));
}

// ------------------------------------------------------------------ literals

Calls read_python(std::string_view body, std::span<const CalledTool> /*tools*/) {
  LiteralReader reader(body, LiteralReader::Style::Python);
  const bool is_list = reader.skip("[");
  std::vector<ToolCall> calls;
  while (!(is_list ? reader.skip("]") : reader.at_end())) {
    const std::string_view name = reader.name();
    if (name.empty() || !reader.skip("(")) return std::nullopt;
    const auto arguments = reader.members("=", ")");
    if (!arguments) return std::nullopt;
    calls.push_back({.name = std::string(name), .arguments = text_of(*arguments)});
    reader.skip(",");
  }
  return calls.empty() || !reader.at_end() ? std::nullopt : Calls(std::move(calls));
}

Calls read_gemma(std::string_view body, std::span<const CalledTool> /*tools*/) {
  LiteralReader reader(body, LiteralReader::Style::Gemma);
  if (!reader.skip("call:")) return std::nullopt;
  const std::string_view name = reader.name();
  if (name.empty() || !reader.skip("{")) return std::nullopt;
  const auto arguments = reader.members(":", "}");
  if (!arguments || !reader.at_end()) return std::nullopt;
  return only(ToolCall{.name = std::string(name), .arguments = text_of(*arguments)});
}

constexpr CallForm kCallForms[] = {
    {.begin = "<tool_call>",
     .end = "</tool_call>",
     .is_json = true,
     .read = read_tagged,
     .may_be_call = may_be_tagged},
    {.begin = "[TOOL_CALLS]", .is_json = true, .name_end = "[ARGS]"},
    {.begin = "<|python_tag|>", .is_json = true},
    {.begin = "<|tool_call|>", .end = "<|/tool_call|>", .is_json = true},
    {.begin = "<|START_ACTION|>", .end = "<|END_ACTION|>", .is_json = true},
    {.begin = "<｜tool▁call▁begin｜>",
     .end = "<｜tool▁call▁end｜>",
     .section_begin = "<｜tool▁calls▁begin｜>",
     .section_end = "<｜tool▁calls▁end｜>",
     .read = read_deepseek},
    {.begin = "<｜DSML｜invoke name=",
     .end = "</｜DSML｜invoke>",
     .section_begin = "<｜DSML｜function_calls>",
     .section_end = "</｜DSML｜function_calls>",
     .read = read_invoke<kDeepSeekTags>},
    {.begin = "<|tool_call_begin|>",
     .end = "<|tool_call_end|>",
     .section_begin = "<|tool_calls_section_begin|>",
     .section_end = "<|tool_calls_section_end|>",
     .read = read_kimi},
    {.begin = "<invoke name=",
     .end = "</invoke>",
     .section_begin = "<minimax:tool_call>",
     .section_end = "</minimax:tool_call>",
     .read = read_invoke<kMiniMaxTags>},
    {.begin = "<|tool_call_start|>", .end = "<|tool_call_end|>", .read = read_python},
    {.begin = "<|tool_call>", .end = "<tool_call|>", .read = read_gemma},
};

constexpr std::string_view kCallTokens[] = {"<tool_call>",
                                            "</tool_call>",
                                            "<arg_key>",
                                            "</arg_key>",
                                            "<arg_value>",
                                            "</arg_value>",
                                            "[TOOL_CALLS]",
                                            "[CALL_ID]",
                                            "[ARGS]",
                                            "<|python_tag|>",
                                            "<|tool_call|>",
                                            "<|/tool_call|>",
                                            "<|START_ACTION|>",
                                            "<|END_ACTION|>",
                                            "<｜tool▁calls▁begin｜>",
                                            "<｜tool▁call▁begin｜>",
                                            "<｜tool▁sep｜>",
                                            "<｜tool▁call▁end｜>",
                                            "<｜tool▁calls▁end｜>",
                                            "<|tool_calls_section_begin|>",
                                            "<|tool_call_begin|>",
                                            "<|tool_call_argument_begin|>",
                                            "<|tool_call_end|>",
                                            "<|tool_calls_section_end|>",
                                            "｜DSML｜",
                                            "<minimax:tool_call>",
                                            "</minimax:tool_call>",
                                            "<|tool_call_start|>",
                                            "<|tool_call>",
                                            "<tool_call|>",
                                            "<|\"|>"};

}  // namespace

std::span<const CallForm> call_forms() {
  return kCallForms;
}

std::span<const std::string_view> call_tokens() {
  return kCallTokens;
}

std::optional<std::vector<ToolCall>> json_calls(std::string_view text) {
  const auto json = parse_shallow(text);
  if (!json) return std::nullopt;
  if (!json->is_array()) return only(call_of(*json));
  std::vector<ToolCall> calls;
  for (const Json& one : *json) {
    auto call = call_of(one);
    if (!call) return std::nullopt;
    calls.push_back(*std::move(call));
  }
  return calls.empty() ? std::nullopt : std::optional(std::move(calls));
}

std::optional<ToolCall> named_call(std::string_view name, std::string_view arguments) {
  if (name.empty() || !is_object(arguments)) return std::nullopt;
  return ToolCall{.name = std::string(name), .arguments = std::string(trimmed(arguments))};
}

}  // namespace leasehold

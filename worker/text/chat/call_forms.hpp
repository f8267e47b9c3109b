/// The forms in which model families write calls of tools, as data. Pure.
///
///   Hermes, Qwen 3, Granite 4     <tool_call>{"name": N, "arguments": {…}}</tool_call>
///   Qwen 3.5, Nemotron 3          <tool_call><function=N><parameter=K>V</parameter>…</function>
///                                 </tool_call>
///   GLM 4.5 and later             <tool_call>N<arg_key>K</arg_key><arg_value>V</arg_value>…
///                                 </tool_call>
///   Mistral                       [TOOL_CALLS][{"name": N, "arguments": {…}}, …]
///   Ministral 3, Devstral 2       [TOOL_CALLS]N[ARGS]{…}
///   Granite 3, Phi-4-mini         <|tool_call|>[{"name": N, "arguments": {…}}]<|/tool_call|>
///   Command R7B, Command A        <|START_ACTION|>[{"tool_name": N, "parameters": {…}}]
///                                 <|END_ACTION|>
///   DeepSeek V3, R1, V3.1         <｜tool▁call▁begin｜>N<｜tool▁sep｜>{…}<｜tool▁call▁end｜>
///   DeepSeek V3.2                 <｜DSML｜invoke name="N">
///                                 <｜DSML｜parameter name="K" string="true">V
///                                 </｜DSML｜parameter>…</｜DSML｜invoke>
///   Kimi K2                       <|tool_call_begin|>functions.N:0<|tool_call_argument_begin|>{…}
///                                 <|tool_call_end|>
///   MiniMax M2                    <invoke name="N"><parameter name="K">V</parameter>…</invoke>
///   LFM2                          <|tool_call_start|>[N(K=V, …), …]<|tool_call_end|>
///   Gemma 4                       <|tool_call>call:N{K:V,…}<tool_call|>
/// Some families enclose their calls in markers of a section.
/// Source: the chat templates of these models.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold {

struct ToolCall {
  std::string name;
  std::string arguments;  ///< JSON: an object of at most 64 levels.
  bool operator==(const ToolCall&) const = default;
};

/// What a request says about a tool.
struct CalledTool {
  std::string name;
  /// The parameters whose schema is a text. Some forms write values without quotes.
  std::vector<std::string> text_parameters = {};
  bool operator==(const CalledTool&) const = default;
};

struct CallForm {
  std::string_view begin;
  std::string_view end = {};  ///< Empty: a call ends with its JSON value.
  /// The markers around one or more calls; empty: none.
  std::string_view section_begin = {}, section_end = {};
  bool is_json = false;            ///< The text after `begin` may be a call in JSON.
  std::string_view name_end = {};  ///< After `begin` there may be a name, this, and arguments.
  /// Reads the text between `begin` and `end`, or null.
  std::optional<std::vector<ToolCall>> (*read)(std::string_view body,
                                               std::span<const CalledTool> tools) = nullptr;
  /// False as soon as no continuation of the text after `begin` is a call. Null: never.
  bool (*may_be_call)(std::string_view begun) = nullptr;
};

std::span<const CallForm> call_forms();

/// The names of tokens in these forms. A file may mark them as control tokens, which have no text.
std::span<const std::string_view> call_tokens();

/// The calls in a JSON object or an array of objects. Returns nothing unless all are calls.
std::optional<std::vector<ToolCall>> json_calls(std::string_view json);

/// A call whose arguments are JSON; nothing if they are not an object, or nest too deep.
std::optional<ToolCall> named_call(std::string_view name, std::string_view arguments);

}  // namespace leasehold

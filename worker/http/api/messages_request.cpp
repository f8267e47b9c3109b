#include "worker/http/api/messages_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "common/utf8.hpp"
#include "worker/http/api/chat_translation.hpp"
#include "worker/http/api/message_blocks.hpp"

namespace leasehold::http {
namespace {

constexpr std::uint32_t kLeastThinkingBudget = 1024;

/// Fields with the same name and meaning in a chat, besides those that same_fields adds.
constexpr std::array kSameFields{"model",      "max_tokens", "stream", "ignore_eos",
                                 "request_id", "rid",        "emitted"};

/// Paths in a chat, each with its path in a message.
constexpr RenamedPath kPaths[] = {{"stop", "stop_sequences"},
                                  {"response_format", "output_config/format"},
                                  {"reasoning_effort", "output_config/effort"}};

const FixedField kFixedFields[] = {
    {"container", nullptr, "no container runs code here; leave container out"},
    {"compaction", nullptr, "a conversation is never shortened; leave compaction out"},
    {"echo", false, "a message has no echo; leave it out"},
    {"fallbacks", OrderedJson::array(), "this worker serves one model; leave fallbacks out"},
    {"include_stop_str_in_output", false, "a message ends before its stop sequence"},
    {"inference_geo", "global", "the model runs on this worker; leave inference_geo out"},
    {"logprobs", false, "a message has no log probabilities; use /v1/chat/completions"},
    {"mcp_servers", OrderedJson::array(), "no MCP server is called; leave mcp_servers out"},
    {"n", 1, "a message has one answer; send several requests"},
    {"prompt_logprobs", nullptr, "a message has no log probabilities; use /v1/chat/completions"},
    {"resumable", false, "no message outlives its client; use /v1/chat/completions"},
    {"response_format", {{"type", "text"}}, "a message has its format in output_config.format"},
    {"stop", nullptr, "the stop texts of a message are stop_sequences; send that"},
    {"thread", nullptr, "no conversation is stored; send all its messages"}};

class Translator {
 public:
  explicit Translator(const OrderedJson& body) : body_(&body, {}) {}

  Read<OrderedJson> chat() {
    out_ = same_fields(body_, kSameFields);
    const std::array steps{&Translator::check_fields,  &Translator::read_ends,
                           &Translator::read_thinking, &Translator::read_output,
                           &Translator::read_tools,    &Translator::read_choice,
                           &Translator::read_messages};
    for (const auto step : steps) TRY((this->*step)());
    return std::move(out_);
  }

 private:
  void copy(const Field& field, const char* as) {
    if (field) out_[as] = field.json();
  }

  Read<void> check_fields() {
    TRY(check_fixed_fields(body_, kFixedFields));
    TRY(check_object(body_["metadata"]));
    return check_edits(body_["context_management"]);
  }

  /// Accepts edits that keep everything, which clients send as a default.
  static Read<void> check_edits(const Field& management) {
    TRY(check_object(management));
    const Field edits = management["edits"];
    TRY(check_array(edits, UINT32_MAX));
    for (std::size_t i = 0; edits && i < edits.json().size(); ++i) {
      const Field edit = edits.at(i);
      if (edit["keep"].text() != "all")
        return edit.refuse("a conversation is never edited; leave context_management out");
    }
    return {};
  }

  Read<void> read_ends() {
    const Field length = body_["max_tokens"];
    if (!length)
      return length.refuse("max_tokens is missing; send the largest number of tokens to generate");
    const Field stops = body_["stop_sequences"];
    TRY(check_array(stops, SamplingParams::kMaxStops));
    copy(stops, "stop");
    return {};
  }

  Read<void> read_thinking() {
    TRY(check_object(body_["chat_template_kwargs"]));
    copy(body_["chat_template_kwargs"], "chat_template_kwargs");
    const Field thinking = body_["thinking"];
    TRY(check_object(thinking));
    if (!thinking) return {};
    const std::string type =
        TRY(word_of(thinking["type"], {"disabled", "enabled", "adaptive", "between_tools"}));
    if (type == "enabled") TRY(check_budget(thinking["budget_tokens"]));
    if (const Field display = thinking["display"]) TRY(word_of(display, {"summarized", "omitted"}));
    OrderedJson& variables = out_["chat_template_kwargs"];
    if (!variables.contains("enable_thinking")) variables["enable_thinking"] = type != "disabled";
    return {};
  }

  Read<void> check_budget(const Field& budget) const {
    const std::uint32_t tokens = TRY(count_of(budget, {.least = kLeastThinkingBudget}, 0));
    if (tokens == 0) return budget.refuse("enabled thinking has budget_tokens; send at least 1024");
    const auto length = whole_number(body_["max_tokens"].json());
    if (!length || tokens < *length) return {};  // a wrong length is refused later
    return budget.refuse(fmt::format(
        "budget_tokens is {}, and max_tokens is {}; send fewer budget_tokens", tokens, *length));
  }

  Read<void> read_output() {
    const Field output = body_["output_config"];
    TRY(check_object(output));
    copy(output["effort"], "reasoning_effort");
    Field format = output["format"];
    if (!format) format = body_["output_format"];
    if (!format) return {};
    TRY(word_of(format["type"], {"json_schema"}));
    const Field schema = format["schema"];
    if (!schema.is_object()) return schema.refuse("a format has the object 'schema'");
    out_["response_format"] = {
        {"type", "json_schema"}, {"schema", schema.json()}, {"strict", true}};
    return {};
  }

  Read<void> read_tools() {
    const Field tools = body_["tools"];
    if (!tools) return {};
    if (!tools.is_array()) return tools.refuse("tools is an array");
    OrderedJson& out = out_["tools"] = OrderedJson::array();
    for (std::size_t i = 0; i < tools.json().size(); ++i) {
      TRY(check_tool(tools.at(i)));
      out.push_back(chat_tool(tools.at(i)));
    }
    return {};
  }

  static Read<void> check_tool(const Field& tool) {
    if (!tool.is_object())
      return tool.refuse(R"(a tool is {"name": …, "input_schema": {"type": "object", …}})");
    const Field type = tool["type"];
    if (type && type.json() != "custom") {
      return type.refuse(fmt::format(
          "{} is a tool that Anthropic's servers define; leave it out, or describe it with a name "
          "and an input_schema",
          printable_excerpt(type.json().dump())));
    }
    const Field name = tool["name"];
    if (name.text().empty()) return name.refuse("the name of a tool is a text");
    const Field schema = tool["input_schema"];
    if (!schema.is_object()) return schema.refuse("the input_schema of a tool is an object");
    if (const Field defers = tool["defer_loading"]; TRY(flag_of(defers, false)))
      return defers.refuse("tools cannot be searched; leave defer_loading out");
    const Field callers = tool["allowed_callers"];
    if (!callers || callers.json() == OrderedJson::array({"direct"})) return {};
    return callers.refuse("only the model calls tools; leave allowed_callers out");
  }

  static OrderedJson chat_tool(const Field& tool) {
    OrderedJson function;
    for (const char* key : {"name", "description", "input_schema", "strict", "input_examples"}) {
      const bool is_schema = key == std::string_view("input_schema");
      if (const Field found = tool[key]) function[is_schema ? "parameters" : key] = found.json();
    }
    return {{"type", "function"}, {"function", std::move(function)}};
  }

  Read<void> read_choice() {
    const Field choice = body_["tool_choice"];
    if (!choice) return {};
    TRY(check_object(choice));
    if (TRY(flag_of(choice["disable_parallel_tool_use"], false)))
      out_["parallel_tool_calls"] = false;
    const std::string type = TRY(word_of(choice["type"], {"auto", "any", "tool", "none"}));
    out_["tool_choice"] = type == "any" ? "required" : type;
    if (type == "any" && !has_tool(nullptr))
      return choice["type"].refuse("a choice of any tool needs tools; send them");
    if (type != "tool") return {};
    const Field name = choice["name"];
    const std::string named = TRY(text_of(name, {}));
    if (!has_tool(&named))
      return name.refuse(
          fmt::format("no tool is named '{}'; send its name", printable_excerpt(named)));
    out_["tool_choice"] = {{"type", "function"}, {"function", {{"name", named}}}};
    return {};
  }

  /// True if there is a tool with this name; null: with any name.
  bool has_tool(const std::string* name) const {
    const auto tools = out_.find("tools");
    return tools != out_.end() && std::ranges::any_of(*tools, [name](const OrderedJson& tool) {
             return name == nullptr || tool["function"]["name"] == *name;
           });
  }

  Read<void> read_messages() {
    const Field sent = body_["messages"];
    OrderedJson messages = TRY(chat_messages_of(body_["system"], sent));
    if (messages.back()["role"] == "assistant") {
      if (field_of(messages.back(), "tool_calls") != nullptr) {
        return sent.at(sent.json().size() - 1)
            .refuse("the last message calls tools; send a tool_result for each call");
      }
      // An empty turn is one that has not begun.
      const bool begins = messages.back()["content"] != "";
      if (begins) out_["continue_final_message"] = true;
      if (!begins) messages.erase(messages.size() - 1);
    }
    out_["messages"] = std::move(messages);
    return {};
  }

  Field body_;
  OrderedJson out_;
};

}  // namespace

Read<OrderedJson> chat_of_message(const OrderedJson& body) {
  return Translator(body).chat();
}

bool omits_thinking(const OrderedJson& body) {
  return Field(&body, {})["thinking"]["display"].text() == "omitted";
}

/// A tool itself has the members that a chat nests in the tool's `function`.
ApiError refusal_of_message(ApiError refused) {
  refused = renamed(std::move(refused), kPaths);
  for (std::string* text : {&refused.param, &refused.error.detail}) {
    if (!text->starts_with("tools/")) continue;
    for (const auto& [nested, own] :
         {std::pair{"/function/parameters", "/input_schema"}, std::pair{"/function", ""}})
      if (const auto at = text->find(nested); at != std::string::npos)
        text->replace(at, std::string_view(nested).size(), own);
  }
  return refused;
}

}  // namespace leasehold::http

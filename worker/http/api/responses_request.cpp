#include "worker/http/api/responses_request.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "worker/http/api/body_field.hpp"
#include "worker/http/api/chat_messages.hpp"
#include "worker/http/api/chat_translation.hpp"

namespace leasehold::http {
namespace {

/// Fields with the same name and meaning in a chat, besides those that same_fields adds.
constexpr std::array kSameFields{"model",
                                 "ignore_eos",
                                 "rid",
                                 "request_id",
                                 "stream",
                                 "emitted",
                                 "parallel_tool_calls",
                                 "top_logprobs",
                                 "chat_template_kwargs",
                                 "continue_final_message",
                                 "add_generation_prompt"};

/// Paths in a chat, each with its path in a response.
constexpr RenamedPath kPaths[] = {
    {"messages", "input"}, {"max_tokens", "max_output_tokens"}, {"response_format", "text/format"}};

const FixedField kFixedFields[] = {
    {"store", false, "no response is stored; send store: false, or leave it out"},
    {"background", false, "no response runs without its client; leave background out"},
    {"echo", false, "a response has no echo; leave it out"},
    {"logprobs", false,
     "log probabilities are asked for with include: [\"message.output_text.logprobs\"]; send that"},
    {"n", 1, "a response has one answer; send several requests"},
    {"prompt_logprobs", nullptr,
     "a response has no log probabilities of its prompt; use /v1/chat/completions"},
    {"resumable", false, "no response outlives its client; use /v1/chat/completions"},
    {"response_format", {{"type", "text"}}, "a response has its format in text.format; send that"},
    {"truncation", "disabled", "input is never cut; send truncation: \"disabled\""}};

class Translator {
 public:
  explicit Translator(const OrderedJson& body) : body_(&body, {}) {}

  Read<OrderedJson> chat() {
    out_ = same_fields(body_, kSameFields);
    copy(body_["max_output_tokens"], "max_tokens");
    const std::array steps{&Translator::check_stored_fields, &Translator::read_logprobs,
                           &Translator::read_effort,         &Translator::read_format,
                           &Translator::read_tools,          &Translator::read_choice,
                           &Translator::read_input};
    for (const auto step : steps) TRY((this->*step)());
    return std::move(out_);
  }

 private:
  void copy(const Field& field, const char* as) {
    if (field) out_[as] = field.json();
  }

  /// Refuses fields that need stored responses, and fields that a response has in another form.
  Read<void> check_stored_fields() {
    TRY(check_fixed_fields(body_, kFixedFields));
    for (const char* key : {"previous_response_id", "conversation", "prompt"}) {
      const Field field = body_[key];
      if (!field) continue;
      return field.refuse(
          fmt::format("no response is stored, so there is no {}; send the whole "
                      "conversation as input",
                      key));
    }
    const Field metadata = body_["metadata"];
    if (!metadata || metadata.json().is_object()) return {};
    return metadata.refuse("metadata is an object of texts");
  }

  /// Passes on the effort as a hint that the template of the model may read.
  Read<void> read_effort() {
    const Field reasoning = body_["reasoning"];
    if (reasoning && !reasoning.json().is_object())
      return reasoning.refuse("reasoning is an object");
    copy(reasoning["effort"], "reasoning_effort");
    return {};
  }

  /// Ignores other values of `include`, which ask for results of hosted tools.
  Read<void> read_logprobs() {
    bool wants = body_["top_logprobs"].is_sent();
    if (const Field include = body_["include"]) {
      if (!include.json().is_array()) return include.refuse("include is an array of texts");
      for (const OrderedJson& one : include.json())
        wants = wants || one == "message.output_text.logprobs";
    }
    if (wants) out_["logprobs"] = true;
    return {};
  }

  Read<void> read_format() {
    const Field text = body_["text"];
    if (text && !text.json().is_object())
      return text.refuse("text is an object with the object 'format'");
    const Field format = text["format"];
    copy(format, "response_format");
    const Field schema = format["schema"];
    if (format["type"].text() != "json_schema" || schema) return {};
    return schema.refuse("a format of type json_schema has the object 'schema'");
  }

  /// Leaves `strict` out of the prompt.
  Read<void> read_tools() {
    const Field tools = body_["tools"];
    if (!tools) return {};
    if (!tools.json().is_array()) return tools.refuse("tools is an array");
    OrderedJson& out = out_["tools"] = OrderedJson::array();
    for (std::size_t i = 0; i < tools.json().size(); ++i) {
      const Field tool = tools.at(i);
      const bool is_function = tool["type"].text() == "function";
      if (!is_function || tool["name"].text().empty())
        return tool[is_function ? "name" : "type"].refuse(
            "a tool is {\"type\": \"function\", \"name\": …}");
      OrderedJson function;
      for (const char* key : {"name", "description", "parameters"})
        if (const Field found = tool[key]) function[key] = found.json();
      out.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    return {};
  }

  Read<void> read_choice() {
    const Field choice = body_["tool_choice"];
    copy(choice, "tool_choice");
    if (choice["type"].text() == "function")
      out_["tool_choice"] = {{"type", "function"}, {"function", {{"name", choice["name"].text()}}}};
    return {};
  }

  Read<void> read_input() {
    messages_ = OrderedJson::array();
    if (const Field instructions = body_["instructions"]) {
      if (!instructions.json().is_string()) return instructions.refuse("instructions is a text");
      messages_.push_back({{"role", "system"}, {"content", instructions.json()}});
    }
    const Field input = body_["input"];
    const bool is_text = input.is_text();
    if (!is_text && (!input.is_array() || input.json().empty()))
      return input.refuse("input is a text, or an array of at least one item");
    if (is_text) messages_.push_back({{"role", "user"}, {"content", input.json()}});
    for (std::size_t i = 0; !is_text && i < input.json().size(); ++i) TRY(add_item(input.at(i)));
    // A turn that was cut off after its reasoning has no content.
    for (OrderedJson& message : messages_)
      if (message["role"] == "assistant" && !has(message, "content") && !has(message, "tool_calls"))
        message["content"] = "";
    out_["messages"] = std::move(messages_);
    return {};
  }

  Read<void> add_item(const Field& item) {
    const std::string type = item["type"].text();
    if (type == "message" || (type.empty() && item["role"])) return add_message(item);
    if (type == "function_call") return add_call(item);
    if (type == "function_call_output") return add_result(item);
    if (type == "reasoning") return add_reasoning(item);
    if (type == "item_reference")
      return item.refuse("no response is stored, so an item cannot be referred to; send it");
    return item["type"].refuse(
        "an item is a message, function_call, function_call_output or reasoning; leave others "
        "out");
  }

  static bool has(const OrderedJson& message, const char* key) {
    return field_of(message, key) != nullptr;
  }

  /// The assistant's message that the next part belongs to: the last message, or a new one if the
  /// last has one of the fields `ends`.
  OrderedJson& turn(std::initializer_list<const char*> ends) {
    const bool is_turn = !messages_.empty() && messages_.back()["role"] == "assistant";
    bool has_ended = !is_turn;
    for (const char* key : ends) has_ended = has_ended || has(messages_.back(), key);
    if (has_ended) messages_.push_back({{"role", "assistant"}});
    return messages_.back();
  }

  Read<void> add_message(const Field& item) {
    const std::string role = TRY(read_role(item));
    const Field content = item["content"];
    if (!content) return item.refuse("a message has the text 'role' and 'content'");
    std::string text = TRY(read_content_text(content));
    if (role == "assistant") {
      turn({"content", "tool_calls"})["content"] = std::move(text);
    } else {
      messages_.push_back({{"role", role}, {"content", std::move(text)}});
    }
    return {};
  }

  Read<void> add_call(const Field& item) {
    for (const char* key : {"call_id", "name", "arguments"})
      if (const Field found = item[key]; !found.is_text())
        return item.refuse(fmt::format("a function_call has the text '{}'", key));
    turn({})["tool_calls"].push_back(
        {{"id", item["call_id"].json()},
         {"type", "function"},
         {"function", {{"name", item["name"].json()}, {"arguments", item["arguments"].json()}}}});
    return {};
  }

  Read<void> add_result(const Field& item) {
    const std::string id = item["call_id"].text();
    const Field output = item["output"];
    if (id.empty() || !output)
      return item.refuse("a function_call_output has the text 'call_id' and 'output'");
    std::string text = TRY(read_content_text(output));
    messages_.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", std::move(text)}});
    return {};
  }

  Read<void> add_reasoning(const Field& item) {
    for (const char* key : {"content", "summary"}) {
      const Field parts = item[key];
      if (!parts || (parts.json().is_array() && parts.json().empty())) continue;
      std::string text = TRY(read_content_text(parts));
      turn({"content", "tool_calls", "reasoning_content"})["reasoning_content"] = std::move(text);
      return {};
    }
    return {};
  }

  Field body_;
  OrderedJson out_;
  OrderedJson messages_;
};

}  // namespace

Read<OrderedJson> chat_of_response(const OrderedJson& body) {
  return Translator(body).chat();
}

/// In a response, a tool itself has the members that a chat nests in the tool's `function`.
ApiError refusal_of_response(ApiError refused) {
  refused = renamed(std::move(refused), kPaths);
  constexpr std::string_view kFunction = "/function";
  if (refused.param.starts_with("tools/"))
    if (const auto at = refused.param.find(kFunction); at != std::string::npos)
      refused.param.erase(at, kFunction.size());
  return refused;
}

std::string repeated_fields(const OrderedJson& body) {
  OrderedJson fields{{"instructions", nullptr},
                     {"max_output_tokens", nullptr},
                     {"metadata", OrderedJson::object()},
                     {"parallel_tool_calls", true},
                     {"previous_response_id", nullptr},
                     {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
                     {"store", false},
                     {"temperature", 1.0},
                     {"text", {{"format", {{"type", "text"}}}}},
                     {"tool_choice", "auto"},
                     {"tools", OrderedJson::array()},
                     {"top_p", 1.0},
                     {"truncation", "disabled"},
                     {"user", nullptr}};
  for (auto& [key, value] : fields.items())
    if (const OrderedJson* sent = field_of(body, key.c_str())) value = *sent;
  return fields.dump();
}

}  // namespace leasehold::http

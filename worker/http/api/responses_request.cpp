#include "worker/http/api/responses_request.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "worker/http/api/body_field.hpp"
#include "worker/http/api/chat_messages.hpp"
#include "worker/http/api/constraint_fields.hpp"
#include "worker/http/api/sampling_fields.hpp"

namespace leasehold::http {
namespace {

/// Fields, besides kSamplingFields, that have the same name and meaning in a chat.
constexpr std::array kSameFields{"model",
                                 "ignore_eos",
                                 "rid",
                                 "request_id",
                                 "stream",
                                 "parallel_tool_calls",
                                 "top_logprobs",
                                 "chat_template_kwargs",
                                 "continue_final_message",
                                 "add_generation_prompt"};

/// Paths in a chat, each with its path in a response.
constexpr std::pair<std::string_view, std::string_view> kPaths[] = {
    {"messages", "input"}, {"max_tokens", "max_output_tokens"}, {"response_format", "text/format"}};

/// The text under this key, or an empty one if there is none.
std::string text_of(const OrderedJson& in, const char* key) {
  const OrderedJson* found = field_of(in, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

class Translator {
 public:
  explicit Translator(const OrderedJson& body) : body_(&body) {}

  std::expected<OrderedJson, ApiError> chat() {
    for (const char* key : kSameFields) copy(key, key);
    for (const char* key : kSamplingFields) copy(key, key);
    for (const char* key : constraint_fields()) copy(key, key);
    out_.erase("response_format");
    copy("max_output_tokens", "max_tokens");
    const std::array steps{&Translator::check_stored_fields, &Translator::read_logprobs,
                           &Translator::read_effort,         &Translator::read_format,
                           &Translator::read_tools,          &Translator::read_choice,
                           &Translator::read_input};
    for (const auto step : steps) {
      (this->*step)();
      if (refused_) return std::unexpected(*std::move(refused_));
    }
    return std::move(out_);
  }

 private:
  void copy(const char* key, const char* as) {
    if (const OrderedJson* found = field_of(*body_, key)) out_[as] = *found;
  }
  void refuse(std::string param, std::string detail) {
    refuse(ApiError{{Errc::BadRequest, std::move(detail)}, std::move(param)});
  }
  void refuse(ApiError refused) {
    if (!refused_) refused_ = std::move(refused);
  }
  bool asks_for(const char* key, const OrderedJson& harmless) const {
    const OrderedJson* found = field_of(*body_, key);
    return found != nullptr && *found != harmless;
  }

  /// Refuses fields that need stored responses, and fields that a response has in another form.
  void check_stored_fields() {
    if (asks_for("store", false))
      return refuse("store", "no response is stored; send store: false, or leave it out");
    if (asks_for("background", false))
      return refuse("background", "no response runs without its client; leave background out");
    if (asks_for("resumable", false))
      return refuse("resumable", "no response outlives its client; use /v1/chat/completions");
    if (asks_for("response_format", {{"type", "text"}}))
      return refuse("response_format", "a response has its format in text.format; send that");
    if (asks_for("truncation", "disabled"))
      return refuse("truncation", "input is never cut; send truncation: \"disabled\"");
    for (const char* key : {"previous_response_id", "conversation", "prompt"}) {
      if (field_of(*body_, key) == nullptr) continue;
      return refuse(key, fmt::format("no response is stored, so there is no {}; send the whole "
                                     "conversation as input",
                                     key));
    }
    if (const OrderedJson* metadata = field_of(*body_, "metadata");
        metadata && !metadata->is_object())
      refuse("metadata", "metadata is an object of texts");
  }

  /// Passes on the effort as a hint that the template of the model may read.
  void read_effort() {
    const OrderedJson* reasoning = field_of(*body_, "reasoning");
    if (reasoning == nullptr) return;
    if (!reasoning->is_object()) return refuse("reasoning", "reasoning is an object");
    if (const OrderedJson* effort = field_of(*reasoning, "effort"))
      out_["reasoning_effort"] = *effort;
  }

  /// Ignores other values of `include`, which ask for results of hosted tools.
  void read_logprobs() {
    bool wants = field_of(*body_, "top_logprobs") != nullptr;
    if (const OrderedJson* include = field_of(*body_, "include")) {
      if (!include->is_array()) return refuse("include", "include is an array of texts");
      for (const OrderedJson& one : *include)
        wants = wants || one == "message.output_text.logprobs";
    }
    if (wants) out_["logprobs"] = true;
  }

  void read_format() {
    const OrderedJson* text = field_of(*body_, "text");
    if (text == nullptr) return;
    if (!text->is_object()) return refuse("text", "text is an object with the object 'format'");
    const OrderedJson* format = field_of(*text, "format");
    if (format == nullptr) return;
    out_["response_format"] = *format;
    if (text_of(*format, "type") == "json_schema" && field_of(*format, "schema") == nullptr)
      refuse("text/format/schema", "a format of type json_schema has the object 'schema'");
  }

  /// Leaves `strict` out of the prompt.
  void read_tools() {
    const OrderedJson* tools = field_of(*body_, "tools");
    if (tools == nullptr) return;
    if (!tools->is_array()) return refuse("tools", "tools is an array");
    OrderedJson& out = out_["tools"] = OrderedJson::array();
    for (const OrderedJson& tool : *tools) {
      const bool is_function = text_of(tool, "type") == "function";
      if (!is_function || text_of(tool, "name").empty())
        return refuse(fmt::format("tools/{}/{}", out.size(), is_function ? "name" : "type"),
                      "a tool is {\"type\": \"function\", \"name\": …}");
      OrderedJson function;
      for (const char* key : {"name", "description", "parameters"})
        if (const OrderedJson* found = field_of(tool, key)) function[key] = *found;
      out.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
  }

  void read_choice() {
    const OrderedJson* choice = field_of(*body_, "tool_choice");
    if (choice == nullptr) return;
    out_["tool_choice"] = *choice;
    if (text_of(*choice, "type") != "function") return;
    out_["tool_choice"] = {{"type", "function"},
                           {"function", {{"name", text_of(*choice, "name")}}}};
  }

  void read_input() {
    messages_ = OrderedJson::array();
    if (const OrderedJson* instructions = field_of(*body_, "instructions")) {
      if (!instructions->is_string()) return refuse("instructions", "instructions is a text");
      messages_.push_back({{"role", "system"}, {"content", *instructions}});
    }
    const OrderedJson* input = field_of(*body_, "input");
    const bool is_text = input != nullptr && input->is_string();
    if (!is_text && (input == nullptr || !input->is_array() || input->empty()))
      return refuse("input", "input is a text, or an array of at least one item");
    if (is_text) messages_.push_back({{"role", "user"}, {"content", *input}});
    for (std::size_t i = 0; !is_text && i < input->size(); ++i)
      add_item((*input)[i], fmt::format("input/{}", i));
    // A turn that was cut off after its reasoning has no content.
    for (OrderedJson& message : messages_)
      if (message["role"] == "assistant" && !has(message, "content") && !has(message, "tool_calls"))
        message["content"] = "";
    out_["messages"] = std::move(messages_);
  }

  void add_item(const OrderedJson& item, const std::string& path) {
    const std::string type = text_of(item, "type");
    if (type == "message" || (type.empty() && field_of(item, "role") != nullptr))
      return add_message(item, path);
    if (type == "function_call") return add_call(item, path);
    if (type == "function_call_output") return add_result(item, path);
    if (type == "reasoning") return add_reasoning(item, path);
    if (type == "item_reference")
      return refuse(path, "no response is stored, so an item cannot be referred to; send it");
    refuse(path + "/type",
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

  void add_message(const OrderedJson& item, const std::string& path) {
    const auto role = read_role(item, path);
    if (!role) return refuse(role.error());
    const OrderedJson* content = field_of(item, "content");
    if (content == nullptr) return refuse(path, "a message has the text 'role' and 'content'");
    const auto text = joined(*content, path + "/content");
    if (!text) return;
    if (*role == "assistant") {
      turn({"content", "tool_calls"})["content"] = *text;
      return;
    }
    messages_.push_back({{"role", *role}, {"content", *text}});
  }

  void add_call(const OrderedJson& item, const std::string& path) {
    for (const char* key : {"call_id", "name", "arguments"})
      if (const OrderedJson* found = field_of(item, key); found == nullptr || !found->is_string())
        return refuse(path, fmt::format("a function_call has the text '{}'", key));
    turn({})["tool_calls"].push_back(
        {{"id", item["call_id"]},
         {"type", "function"},
         {"function", {{"name", item["name"]}, {"arguments", item["arguments"]}}}});
  }

  void add_result(const OrderedJson& item, const std::string& path) {
    const OrderedJson* output = field_of(item, "output");
    if (text_of(item, "call_id").empty() || output == nullptr)
      return refuse(path, "a function_call_output has the text 'call_id' and 'output'");
    const auto text = joined(*output, path + "/output");
    if (text)
      messages_.push_back(
          {{"role", "tool"}, {"tool_call_id", item["call_id"]}, {"content", *text}});
  }

  void add_reasoning(const OrderedJson& item, const std::string& path) {
    for (const char* key : {"content", "summary"}) {
      const OrderedJson* parts = field_of(item, key);
      if (parts == nullptr || (parts->is_array() && parts->empty())) continue;
      const auto text = joined(*parts, fmt::format("{}/{}", path, key));
      if (text) turn({"content", "tool_calls", "reasoning_content"})["reasoning_content"] = *text;
      return;
    }
  }

  /// The content as one text. Refuses content that is neither a text nor text parts, and returns
  /// nothing.
  std::optional<std::string> joined(const OrderedJson& content, const std::string& path) {
    auto text = read_content_text(content, path);
    if (text) return *std::move(text);
    refuse(text.error());
    return std::nullopt;
  }

  const OrderedJson* body_;
  OrderedJson out_ = OrderedJson::object();
  OrderedJson messages_;
  std::optional<ApiError> refused_;
};

}  // namespace

std::expected<OrderedJson, ApiError> chat_of_response(const OrderedJson& body) {
  return Translator(body).chat();
}

/// In a response, a tool itself has the members that a chat nests in the tool's `function`.
ApiError refusal_of_response(ApiError refused) {
  std::string& path = refused.param;
  std::string& detail = refused.error.detail;
  const auto replace_all = [&](std::string_view from, std::string_view to) {
    for (auto at = detail.find(from); at != std::string::npos;
         at = detail.find(from, at + to.size()))
      detail.replace(at, from.size(), to);
  };
  for (const auto& [chat, response] : kPaths) {
    if (path == chat || path.starts_with(std::string(chat) + "/"))
      path.replace(0, chat.size(), response);
    replace_all(chat, response);
  }
  constexpr std::string_view kFunction = "/function";
  if (path.starts_with("tools/"))
    if (const auto at = path.find(kFunction); at != std::string::npos)
      path.erase(at, kFunction.size());
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

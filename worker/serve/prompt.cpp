#include "worker/serve/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "common/utf8.hpp"
#include "ipc/control/transport/excess.hpp"
#include "worker/text/chat/json_value.hpp"
#include "worker/text/chat/tools_as_text.hpp"

namespace leasehold {
namespace {

/// Gives a tool without a description an empty one, if the template needs it.
Result<jinja::Value> tools_value(const std::string& json, const ChatTemplate& chat) {
  auto tools = TRY(control::parse_request_json(json, "tools"));
  if (!chat.needs_tool_descriptions() || !tools.is_array()) return value_from_json(tools);
  for (auto& tool : tools) {
    const bool has_function = tool.is_object() && tool.contains("function");
    if (!has_function || !tool["function"].is_object()) continue;
    auto& description = tool["function"]["description"];
    if (description.is_null()) description = "";
  }
  return value_from_json(tools);
}

constexpr std::string_view kCalls = "tool_calls";

/// Converts the arguments of a call to the form that the template prints. An empty text and null
/// mean no arguments; a text that is not a JSON object stays a text.
Result<void> restyle_arguments(nlohmann::ordered_json& arguments, const CallStyle& style) {
  if (arguments.is_null() || arguments == "") arguments = nlohmann::ordered_json::object();
  if (style.arguments_as_text) {
    if (!arguments.is_string()) arguments = arguments.dump();
    return {};
  }
  if (!arguments.is_string()) return {};
  const std::string& text = arguments.get_ref<const std::string&>();
  if (const auto excess = control::exceeded_limit(text, control::kRequestLimits))
    return fail(Errc::BadRequest,
                fmt::format("{}: the arguments of a call have {}; send less", kCalls, *excess));
  auto parsed = control::parse_request_json(text, "the arguments of a call");
  if (parsed && parsed->is_object()) arguments = *std::move(parsed);
  return {};
}

Result<jinja::Value> tool_calls_value(std::string_view json, const CallStyle& style) {
  auto calls = TRY(control::parse_request_json(json, kCalls));
  if (!calls.is_array())
    return fail(Errc::BadRequest, fmt::format("{} is an array; send OpenAI's form", kCalls));
  for (auto& call : calls) {
    const bool is_call = call.is_object() && call.contains("function");
    if (is_call && call["function"].is_object())
      TRY(restyle_arguments(call["function"]["arguments"], style));
  }
  return value_from_json(calls);
}

/// Converts a role to the template's name for it: "function" is the old name of "tool".
Result<std::string> template_role(const std::string& role, const ChatTemplate& chat) {
  if (!is_chat_role(role)) {
    return fail(Errc::BadRequest,
                fmt::format("role: unknown role '{}'; send system, developer, user, assistant or "
                            "tool",
                            printable_excerpt(role)));
  }
  if (role == "developer" && !chat.has_developer_role()) return "system";
  return role == "function" ? "tool" : role;
}

Result<ChatMessage> template_message(const wire::ChatMessage& message, const ChatTemplate& chat) {
  const CallStyle& style = chat.call_style();
  ChatMessage out{.role = TRY(template_role(message.role, chat)), .content = message.content};
  const bool only_calls = !message.content && !message.tool_calls.empty();
  if (!message.content && (!only_calls || style.empty_content_as_text)) out.content = "";
  if (!message.tool_calls.empty())
    out.more.emplace_back("tool_calls", TRY(tool_calls_value(message.tool_calls, style)));
  const std::pair<const char*, const std::string*> texts[] = {
      {"tool_call_id", &message.tool_call_id},
      {"name", &message.name},
      {"reasoning_content", &message.reasoning_content}};
  for (const auto& [key, text] : texts)
    if (!text->empty()) out.more.emplace_back(key, jinja::Value::text(*text));
  return out;
}

/// Errors contain the path of the message, such as "messages/2".
Result<std::vector<ChatMessage>> template_messages(const std::vector<wire::ChatMessage>& messages,
                                                   const ChatTemplate& chat) {
  std::vector<ChatMessage> all;
  for (const wire::ChatMessage& message : messages) {
    auto read = template_message(message, chat);
    if (!read) {
      return fail(read.error().code,
                  fmt::format("messages/{}/{}", all.size(), read.error().detail));
    }
    all.push_back(*std::move(read));
  }
  return all;
}

/// Parses the client's template variables. Variables that the worker sets are refused, because they
/// would change the turn or the control tokens.
Result<jinja::Template::Variables> template_variables(const std::string& json) {
  static constexpr std::string_view kOwn[] = {"messages",  "tools",     "add_generation_prompt",
                                              "bos_token", "eos_token", "unk_token",
                                              "pad_token", "documents"};
  jinja::Template::Variables variables;
  if (json.empty()) return variables;
  const auto parsed = TRY(control::parse_request_json(json, "chat_template_kwargs"));
  if (!parsed.is_object())
    return fail(Errc::BadRequest, "chat_template_kwargs is not an object; send one");
  for (const auto& [key, value] : parsed.items()) {
    if (std::ranges::find(kOwn, key) != std::end(kOwn)) {
      return fail(Errc::BadRequest,
                  fmt::format("chat_template_kwargs cannot set {}; leave it out", key));
    }
    variables.emplace_back(key, TRY(value_from_json(value)));
  }
  return variables;
}

/// The last position at which `part` occurs in the client's text. Later occurrences in text that
/// the template prints, such as the name of a control token, do not count.
std::optional<std::size_t> last_of_client(const MarkedText& prompt, std::string_view part) {
  const std::string_view bytes = prompt.bytes();
  for (auto at = bytes.rfind(part); at != bytes.npos; at = bytes.rfind(part, at - 1)) {
    if (prompt.part(bytes.substr(at, part.size())).from_template().empty()) return at;
    if (at == 0) break;
  }
  return std::nullopt;
}

/// Removes the text that the template prints after the content of the last message, which ends the
/// turn. Templates may trim the content, so the search is for the trimmed text.
Result<MarkedText> end_with_content(const MarkedText& prompt, const wire::ChatMessage& last) {
  constexpr std::string_view kBlanks = " \t\n\r";
  const std::string_view content = last.content ? *last.content : std::string_view();
  const auto first = content.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return fail(Errc::BadRequest,
                "the last message has no text that could be continued; leave out "
                "continue_final_message");
  }
  const std::string_view with_end = content.substr(first);
  const std::string_view trimmed = with_end.substr(0, with_end.find_last_not_of(kBlanks) + 1);
  const auto at = last_of_client(prompt, trimmed);
  if (!at) {
    return fail(Errc::BadRequest,
                "the chat template does not print the last message as it was sent, so it cannot be "
                "continued; leave out continue_final_message");
  }
  const std::string_view bytes = prompt.bytes();
  const bool keeps_end = bytes.substr(*at).starts_with(with_end);
  return prompt.part(bytes.substr(0, *at + (keeps_end ? with_end.size() : trimmed.size())));
}

}  // namespace

std::size_t PromptEncoder::max_prompt_bytes() const {
  return std::size_t{max_context} * tokenizer->longest_piece_bytes();
}

std::string_view name(ContextBound bound) {
  switch (bound) {
    case ContextBound::Model:
      return "the model's context";
    case ContextBound::SlidingWindow:
      return "the model's sliding window, beyond which this worker does not compute,";
    case ContextBound::Worker:
      return "this worker's --max-context";
  }
  return "the context";
}

Result<std::vector<TokenId>> PromptEncoder::encode(const wire::RequestSubmit& request,
                                                   std::int64_t now_unix_s) const {
  if (request.prompt_tokens) return *request.prompt_tokens;
  if (request.messages) {
    return tokenizer->encode(TRY(render_messages(request, now_unix_s)));
  }
  return encode_text(request);
}

Result<std::vector<TokenId>> PromptEncoder::encode_text(const wire::RequestSubmit& request) const {
  if (request.prompt->empty())
    return fail(Errc::BadRequest, "the prompt is empty; send text, tokens or messages");
  TRY(check_length(*request.prompt));
  auto tokens = TRY(tokenizer->encode(
      *request.prompt, request.parse_special ? SpecialTokens::AsTokens : SpecialTokens::AsText));
  const std::optional<TokenId> end = tokenizer->added_eos();
  const bool lacks_end = request.embedding && end && (tokens.empty() || tokens.back() != *end);
  if (lacks_end) tokens.push_back(*end);
  return tokens;
}

Result<std::vector<TokenId>> PromptEncoder::encode_published(const std::string& text) const {
  TRY(check_length(text));
  return tokenizer->encode(text, SpecialTokens::AsTokens);
}

Result<void> PromptEncoder::check_length(const std::string& text) const {
  if (text.size() <= max_prompt_bytes()) return {};
  return fail(Errc::PromptTooLong,
              fmt::format("the prompt has {} bytes, and {} holds {} tokens; shorten it",
                          text.size(), name(context_bound), max_context));
}

/// Renders the messages with the model's chat template.
Result<MarkedText> PromptEncoder::render_messages(const wire::RequestSubmit& request,
                                                  std::int64_t now_unix_s) const {
  if (!*chat) return std::unexpected(chat->error());
  if (request.messages->empty())
    return fail(Errc::BadRequest, "messages is empty; send at least one");
  const jinja::Limits limits{.output_bytes =
                                 std::min(max_prompt_bytes(), jinja::Limits{}.output_bytes)};
  auto messages = TRY(template_messages(*request.messages, **chat));
  jinja::Value tools(jinja::None{});
  if (!request.tools.empty()) tools = TRY(tools_value(request.tools, **chat));
  if (needs_tools_as_text(**chat, messages, tools)) {
    messages = TRY(tools_as_text(**chat, std::move(messages), tools, limits));
    tools = jinja::Value(jinja::None{});
  }
  auto extra = TRY(template_variables(request.chat_template_kwargs));
  MarkedText prompt =
      TRY((*chat)->render({.messages = messages_value(messages),
                           .tools = std::move(tools),
                           .add_generation_prompt = request.add_generation_prompt,
                           .extra = std::move(extra),
                           .now_unix_s = request.asked_at_unix_s.value_or(now_unix_s)},
                          limits));
  if (request.continue_final_message) return end_with_content(prompt, request.messages->back());
  return prompt;
}

Result<std::optional<Error>> check_prompts(const Tokenizer& tokenizer,
                                           const Result<ChatTemplate>& chat) {
  constexpr const char* kText = "Hi";
  if (const auto encoded = tokenizer.encode(kText); !encoded) {
    return fail(Errc::UnsupportedModel,
                "the tokenizer cannot encode a short text: " + encoded.error().detail);
  }
  if (!chat) return chat.error();
  const std::array<ChatMessage, 1> messages{{{.role = "user", .content = kText}}};
  const auto rendered = chat->render({.messages = messages_value(messages)});
  if (!rendered) return rendered.error();
  const auto encoded = tokenizer.encode(*rendered);
  if (!encoded) return encoded.error();
  if (encoded->empty())
    return Error{Errc::UnsupportedModel, "the chat template makes an empty prompt of a message"};
  return std::nullopt;
}

}  // namespace leasehold

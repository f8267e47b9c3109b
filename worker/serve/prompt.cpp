#include "worker/serve/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ipc/control/excess.hpp"
#include "worker/text/chat/json_value.hpp"

namespace leasehold {
namespace {

Result<jinja::Value> template_value(const std::string& json, const char* field) {
  return value_from_json(TRY(control::parse_request_json(json, field)));
}

/// Arguments that are the text of an object become the object, which templates print.
Result<jinja::Value> tool_calls_value(std::string_view json) {
  auto calls = TRY(control::parse_request_json(json, "tool_calls of a message"));
  if (!calls.is_array())
    return fail(Errc::BadRequest, "tool_calls of a message is an array; send OpenAI's form");
  for (auto& call : calls) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) continue;
    auto& function = call["function"];
    if (!function.contains("arguments") || !function["arguments"].is_string()) continue;
    const std::string& text = function["arguments"].get_ref<const std::string&>();
    if (const auto excess = control::excess_of(text, control::kRequestLimits))
      return fail(Errc::BadRequest,
                  fmt::format("the arguments of a call have {}; send less", *excess));
    auto arguments = nlohmann::ordered_json::parse(text, nullptr, false);
    if (arguments.is_object()) function["arguments"] = std::move(arguments);
  }
  return value_from_json(calls);
}

Result<ChatMessage> template_message(const wire::ChatMessage& message) {
  ChatMessage out{.role = message.role, .content = message.content};
  if (!message.tool_calls.empty())
    out.more.emplace_back("tool_calls", TRY(tool_calls_value(message.tool_calls)));
  const std::pair<const char*, const std::string*> texts[] = {
      {"tool_call_id", &message.tool_call_id},
      {"name", &message.name},
      {"reasoning_content", &message.reasoning_content}};
  for (const auto& [key, text] : texts)
    if (!text->empty()) out.more.emplace_back(key, jinja::Value::text(*text));
  return out;
}

/// The variables that the worker sets are not the client's: they would change whose turn it is, or
/// what the control tokens are.
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

/// Cuts what the template prints after the content of the last message: the end of its turn.
/// Templates may trim a content, so the last place of the trimmed text counts.
Result<void> end_with_content(std::string& prompt, const wire::ChatMessage& last) {
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
  const auto at = prompt.rfind(trimmed);
  if (at == std::string::npos) {
    return fail(Errc::BadRequest,
                "the chat template does not print the last message as it was sent, so it cannot be "
                "continued; leave out continue_final_message");
  }
  const bool keeps_end = std::string_view(prompt).substr(at).starts_with(with_end);
  prompt.resize(at + (keeps_end ? with_end.size() : trimmed.size()));
  return {};
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
    const std::string text = TRY(render_messages(request, now_unix_s));
    return tokenizer->encode(text, SpecialTokens::AsTokens);
  }
  if (request.prompt->empty())
    return fail(Errc::BadRequest, "the prompt is empty; send text, tokens or messages");
  TRY(check_length(*request.prompt));
  return tokenizer->encode(*request.prompt);
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
Result<std::string> PromptEncoder::render_messages(const wire::RequestSubmit& request,
                                                   std::int64_t now_unix_s) const {
  if (!*chat) return std::unexpected(chat->error());
  if (request.messages->empty())
    return fail(Errc::BadRequest, "messages is empty; send at least one");
  if (!request.tools.empty() && !(*chat)->uses_tools()) {
    return fail(
        Errc::BadRequest,
        "the chat template of this model has no tools; leave tools out, or use another model");
  }
  std::vector<ChatMessage> messages;
  for (const wire::ChatMessage& message : *request.messages)
    messages.push_back(TRY(template_message(message)));
  jinja::Value tools(jinja::None{});
  if (!request.tools.empty()) tools = TRY(template_value(request.tools, "tools"));
  auto extra = TRY(template_variables(request.chat_template_kwargs));
  std::string prompt = TRY((*chat)->render(
      {.messages = messages_value(messages),
       .tools = std::move(tools),
       .add_generation_prompt = request.add_generation_prompt,
       .extra = std::move(extra),
       .now_unix_s = request.asked_at_unix_s.value_or(now_unix_s)},
      {.output_bytes = std::min(max_prompt_bytes(), jinja::Limits{}.output_bytes)}));
  if (request.continue_final_message) TRY(end_with_content(prompt, request.messages->back()));
  return prompt;
}

}  // namespace leasehold

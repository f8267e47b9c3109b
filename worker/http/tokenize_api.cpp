#include "worker/http/tokenize_api.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/terminal_text.hpp"
#include "ipc/control/excess.hpp"
#include "ipc/http/http_errors.hpp"
#include "worker/http/body_field.hpp"
#include "worker/http/chat_messages.hpp"

namespace leasehold::http {
namespace {

using Json = nlohmann::json;

Answer refuse_field(const char* param, std::string detail) {
  return error_answer({{Errc::BadRequest, std::move(detail)}, param});
}

/// Pieces may end within a character.
Answer answer_of(const Json& json) {
  return {.body = escape_controls(json.dump(-1, ' ', false, Json::error_handler_t::replace))};
}

bool flag_of(const OrderedJson& body, const char* key, bool otherwise) {
  const OrderedJson* found = field_of(body, key);
  return found != nullptr && found->is_boolean() ? found->get<bool>() : otherwise;
}

using Tokens = std::expected<std::vector<TokenId>, ApiError>;

Tokens refused(const char* param, std::string detail) {
  return std::unexpected(ApiError{{Errc::BadRequest, std::move(detail)}, param});
}

Tokens tokens_of_text(const OrderedJson& body, const Tokenizer& tokenizer) {
  const OrderedJson* prompt = field_of(body, "prompt");
  if (prompt == nullptr || !prompt->is_string())
    return refused("prompt", "send a JSON object with the text 'prompt' or the array 'messages'");
  auto tokens = tokenizer.encode(prompt->get_ref<const std::string&>());
  if (!tokens) return std::unexpected(ApiError{tokens.error(), "prompt"});
  const bool begins_with_bos = !tokens->empty() && tokens->front() == tokenizer.bos();
  if (begins_with_bos && !flag_of(body, "add_special_tokens", true)) tokens->erase(tokens->begin());
  return *std::move(tokens);
}

Tokens tokens_of_chat(const OrderedJson& body, const ApiModel& model, const EncodeChat& encode) {
  if (field_of(body, "prompt") != nullptr)
    return refused("prompt", "prompt and messages exclude each other; send one");
  if (field_of(body, "chat_template") != nullptr)
    return refused("chat_template", "the template is the model's; leave chat_template out");
  if (flag_of(body, "continue_final_message", false))
    return refused("continue_final_message",
                   "a chat begins a new message; leave continue_final_message out");
  wire::RequestSubmit chat;
  auto messages = read_chat_messages(field_of(body, "messages"));
  if (!messages) return std::unexpected(ApiError{messages.error(), "messages"});
  chat.messages = *std::move(messages);
  if (const OrderedJson* tools = field_of(body, "tools"); tools != nullptr) {
    if (!tools->is_array()) return refused("tools", "tools is an array");
    if (!tools->empty() && !model.has_tools)
      return refused("tools", "this model's chat template has no tools; leave them out");
    if (!tools->empty()) chat.tools = tools->dump();
  }
  if (const OrderedJson* kwargs = field_of(body, "chat_template_kwargs"); kwargs != nullptr) {
    if (!kwargs->is_object())
      return refused("chat_template_kwargs", "chat_template_kwargs is an object");
    chat.chat_template_kwargs = kwargs->dump();
  }
  auto tokens = encode(chat, flag_of(body, "add_generation_prompt", true));
  if (!tokens) return std::unexpected(ApiError{tokens.error(), "messages"});
  return *std::move(tokens);
}

}  // namespace

Answer tokenize(std::string_view text, const Tokenizer& tokenizer, const ApiModel& model,
                const EncodeChat& encode_chat) {
  const auto body = control::parse_request_json(text, "the body");
  if (!body) return error_answer({body.error()});
  const bool is_chat = field_of(*body, "messages") != nullptr;
  const Tokens tokens =
      is_chat ? tokens_of_chat(*body, model, encode_chat) : tokens_of_text(*body, tokenizer);
  if (!tokens) return error_answer(tokens.error());
  Json answer{{"count", tokens->size()}, {"max_model_len", model.max_context}, {"tokens", *tokens}};
  if (flag_of(*body, "return_token_strs", false)) {
    answer["token_strs"] = Json::array();
    for (const TokenId token : *tokens) answer["token_strs"].push_back(tokenizer.text(token));
  }
  return answer_of(answer);
}

Answer detokenize(std::string_view text, const Tokenizer& tokenizer) {
  const auto body = control::parse_request_json(text, "the body");
  if (!body) return error_answer({body.error()});
  const auto tokens = body->is_object() ? body->find("tokens") : body->end();
  if (!body->is_object() || tokens == body->end() || !tokens->is_array())
    return refuse_field("tokens", "send a JSON object with the array 'tokens'");
  std::string prompt;
  for (const nlohmann::ordered_json& token : *tokens) {
    const bool is_id = token.is_number_unsigned() && token < tokenizer.n_vocab();
    if (!is_id)
      return refuse_field("tokens",
                          fmt::format("a token is an id from 0 to {}", tokenizer.n_vocab() - 1));
    prompt += tokenizer.piece(token.get<TokenId>());
  }
  // The space that `tokenize` adds before a text.
  if (tokenizer.adds_space_prefix() && prompt.starts_with(' ')) prompt.erase(0, 1);
  return answer_of({{"prompt", prompt}});
}

}  // namespace leasehold::http

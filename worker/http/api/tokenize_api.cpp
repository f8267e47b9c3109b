#include "worker/http/api/tokenize_api.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/cli/terminal_text.hpp"
#include "ipc/control/transport/excess.hpp"
#include "ipc/http/http_errors.hpp"
#include "worker/http/api/body_field.hpp"
#include "worker/http/api/chat_messages.hpp"
#include "worker/http/api/sampling_fields.hpp"

namespace leasehold::http {
namespace {

using Json = nlohmann::json;

Answer refuse_field(const char* param, std::string detail) {
  return error_answer({{Errc::BadRequest, std::move(detail)}, param});
}

/// Replaces invalid UTF-8, because the text of a token may end within a character.
Answer answer_of(const Json& json) {
  return {.body = escape_controls(json.dump(-1, ' ', false, Json::error_handler_t::replace))};
}

using Tokens = std::expected<std::vector<TokenId>, ApiError>;

Tokens refused(const char* param, std::string detail) {
  return std::unexpected(ApiError{{Errc::BadRequest, std::move(detail)}, param});
}

Tokens tokens_of_text(const OrderedJson& body, const Tokenizer& tokenizer) {
  const BodyFields fields(body);
  const bool has_special = TRY(flag_of(fields["add_special_tokens"], true));
  const bool parses = TRY(flag_of(fields["parse_special"], false));
  const OrderedJson* prompt = field_of(body, "prompt");
  if (prompt == nullptr || !prompt->is_string())
    return refused("prompt", "send a JSON object with the text 'prompt' or the array 'messages'");
  const auto& text = prompt->get_ref<const std::string&>();
  auto tokens = tokenizer.encode(text, parses ? SpecialTokens::AsTokens : SpecialTokens::AsText);
  if (!tokens) return std::unexpected(ApiError{tokens.error(), "prompt"});
  const bool begins_with_bos = !tokens->empty() && tokens->front() == tokenizer.bos();
  const bool is_spelt =
      begins_with_bos && parses && text.starts_with(tokenizer.text(*tokenizer.bos()));
  if (begins_with_bos && !is_spelt && !has_special) tokens->erase(tokens->begin());
  return *std::move(tokens);
}

Tokens tokens_of_chat(const OrderedJson& body, const ApiModel& model, const EncodeChat& encode) {
  if (field_of(body, "prompt") != nullptr)
    return refused("prompt", "prompt and messages exclude each other; send one");
  if (field_of(body, "chat_template") != nullptr)
    return refused("chat_template", "the template is the model's; leave chat_template out");
  wire::RequestSubmit chat;
  auto messages = read_chat_messages(field_of(body, "messages"));
  if (!messages) return std::unexpected(messages.error());
  chat.messages = *std::move(messages);
  if (const OrderedJson* tools = field_of(body, "tools"); tools != nullptr) {
    if (!tools->is_array()) return refused("tools", "tools is an array");
    if (!tools->empty() && !model.has_tools)
      return refused("tools", "this model's chat template has no tools; leave them out");
    if (!tools->empty()) chat.tools = tools->dump();
  }
  TRY(read_template_fields(BodyFields(body), chat));
  auto tokens = encode(chat);
  if (!tokens) return std::unexpected(ApiError{tokens.error(), "messages"});
  return *std::move(tokens);
}

}  // namespace

Answer tokenize(std::string_view text, const Tokenizer& tokenizer, const ApiModel& model,
                const EncodeChat& encode_chat) {
  const auto body = control::parse_request_json(text, "the body");
  if (!body) return error_answer({body.error()});
  if (!body->is_object()) return refuse_field("", "the body is not a JSON object; send one");
  const auto shows_texts = flag_of(BodyFields(*body)["return_token_strs"], false);
  if (!shows_texts) return error_answer(shows_texts.error());
  const bool is_chat = field_of(*body, "messages") != nullptr;
  const Tokens tokens =
      is_chat ? tokens_of_chat(*body, model, encode_chat) : tokens_of_text(*body, tokenizer);
  if (!tokens) return error_answer(tokens.error());
  Json answer{{"count", tokens->size()}, {"max_model_len", model.max_context}, {"tokens", *tokens}};
  if (*shows_texts) {
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
  const Field all(&*tokens, "tokens");
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    const auto token = token_id(all.at(i), static_cast<std::uint32_t>(tokenizer.n_vocab()));
    if (!token) return error_answer(token.error());
    prompt += tokenizer.piece(*token);
  }
  // Remove the space that `tokenize` adds before a text.
  if (tokenizer.adds_space_prefix() && prompt.starts_with(' ')) prompt.erase(0, 1);
  return answer_of({{"prompt", prompt}});
}

}  // namespace leasehold::http

#include "worker/http/api/tokenize_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

#include "common/cli/terminal_text.hpp"
#include "ipc/control/transport/excess.hpp"
#include "ipc/http/http_errors.hpp"
#include "worker/http/api/body_field.hpp"
#include "worker/http/api/chat_messages.hpp"
#include "worker/http/api/request_fields.hpp"
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

using Tokens = Read<std::vector<TokenId>>;

Tokens tokens_of_text(const BodyFields& body, const Tokenizer& tokenizer) {
  const bool has_special = TRY(flag_of(body["add_special_tokens"], true));
  const bool parses = TRY(flag_of(body["parse_special"], false));
  const Field prompt = body["prompt"];
  if (!prompt.is_text())
    return prompt.refuse("send a JSON object with the text 'prompt' or the array 'messages'");
  const auto& text = prompt.json().get_ref<const std::string&>();
  auto tokens = tokenizer.encode(text, parses ? SpecialTokens::AsTokens : SpecialTokens::AsText);
  if (!tokens) return std::unexpected(ApiError{tokens.error(), prompt.path()});
  const bool begins_with_bos = !tokens->empty() && tokens->front() == tokenizer.bos();
  const bool is_spelt =
      begins_with_bos && parses && text.starts_with(tokenizer.text(*tokenizer.bos()));
  if (begins_with_bos && !is_spelt && !has_special) tokens->erase(tokens->begin());
  return *std::move(tokens);
}

Tokens tokens_of_chat(const BodyFields& body, const EncodeChat& encode) {
  if (const Field prompt = body["prompt"])
    return prompt.refuse("prompt and messages exclude each other; send one");
  if (const Field own = body["chat_template"])
    return own.refuse("the template is the model's; leave chat_template out");
  wire::RequestSubmit chat;
  const Field messages = body["messages"];
  chat.messages = TRY(read_chat_messages(messages));
  if (const Field tools = body["tools"]) {
    if (!tools.json().is_array()) return tools.refuse("tools is an array");
    if (!tools.json().empty()) chat.tools = tools.json().dump();
  }
  TRY(read_template_fields(body, chat));
  auto tokens = encode(chat);
  if (!tokens) return std::unexpected(ApiError{tokens.error(), messages.path()});
  return *std::move(tokens);
}

}  // namespace

Answer tokenize(std::string_view text, const Tokenizer& tokenizer, const ApiModel& model,
                const EncodeChat& encode_chat) {
  const auto body = control::parse_request_json(text, "the body");
  if (!body) return error_answer({body.error()});
  if (!body->is_object()) return refuse_field("", "the body is not a JSON object; send one");
  const BodyFields fields(*body);
  if (const auto checked = read_model_name(fields["model"], model); !checked)
    return error_answer(checked.error());
  const auto shows_texts = flag_of(fields["return_token_strs"], false);
  if (!shows_texts) return error_answer(shows_texts.error());
  const Tokens tokens =
      fields["messages"] ? tokens_of_chat(fields, encode_chat) : tokens_of_text(fields, tokenizer);
  if (!tokens) return error_answer(tokens.error());
  Json answer{{"count", tokens->size()}, {"max_model_len", model.max_context}, {"tokens", *tokens}};
  if (*shows_texts) {
    answer["token_strs"] = Json::array();
    for (const TokenId token : *tokens) answer["token_strs"].push_back(tokenizer.text(token));
  }
  return answer_of(answer);
}

Answer detokenize(std::string_view text, const Tokenizer& tokenizer, const ApiModel& model) {
  const auto body = control::parse_request_json(text, "the body");
  if (!body) return error_answer({body.error()});
  const Field whole(&*body, {});
  if (const auto checked = read_model_name(whole["model"], model); !checked)
    return error_answer(checked.error());
  const Field tokens = whole["tokens"];
  if (!tokens.is_array())
    return refuse_field("tokens", "send a JSON object with the array 'tokens'");
  std::string prompt;
  for (std::size_t i = 0; i < tokens.json().size(); ++i) {
    const auto token = token_id(tokens.at(i), static_cast<std::uint32_t>(tokenizer.n_vocab()));
    if (!token) return error_answer(token.error());
    prompt += tokenizer.piece(*token);
  }
  // Remove the space that `tokenize` adds before a text.
  if (tokenizer.adds_space_prefix() && prompt.starts_with(' ')) prompt.erase(0, 1);
  return answer_of({{"prompt", prompt}});
}

Answer count_message_tokens(std::string_view body, const ApiModel& model,
                            const EncodeChat& encode_chat) {
  const auto prompt = parse_message_prompt(body, model);
  if (!prompt) return error_answer(prompt.error());
  const auto tokens = encode_chat(*prompt);
  if (!tokens) return error_answer({tokens.error(), "messages"});
  return answer_of({{"input_tokens", tokens->size()}});
}

Answer tokenizer_info(const Tokenizer& tokenizer) {
  Json info{{"tokenizer_class", "remote"}, {"bos_token", nullptr}, {"eos_token", nullptr}};
  if (tokenizer.bos()) info["bos_token"] = tokenizer.text(*tokenizer.bos());
  const auto tokens = std::views::iota(0, static_cast<TokenId>(tokenizer.n_vocab()));
  const auto end = std::ranges::find_if(
      tokens, [&tokenizer](TokenId token) { return tokenizer.is_end_token(token); });
  if (end != tokens.end()) info["eos_token"] = tokenizer.text(*end);
  return answer_of(info);
}

}  // namespace leasehold::http

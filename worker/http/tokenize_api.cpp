#include "worker/http/tokenize_api.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ipc/control/excess.hpp"
#include "ipc/http/http_errors.hpp"

namespace leasehold::http {
namespace {

using Json = nlohmann::json;

Answer refuse_field(const char* param, std::string detail) {
  return error_answer({{Errc::BadRequest, std::move(detail)}, param});
}

/// Pieces may end within a character.
Answer answer_of(const Json& json) {
  return {.body = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

bool flag_of(const nlohmann::ordered_json& body, const char* key, bool otherwise) {
  const auto found = body.find(key);
  return found != body.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

}  // namespace

Answer tokenize(std::string_view text, const Tokenizer& tokenizer, const ApiModel& model) {
  const auto body = control::parse_request_json(text, "the body");
  if (!body) return error_answer({body.error()});
  const auto prompt = body->is_object() ? body->find("prompt") : body->end();
  if (!body->is_object() || prompt == body->end() || !prompt->is_string())
    return refuse_field("prompt", "send a JSON object with the text 'prompt'");
  auto tokens = tokenizer.encode(prompt->get_ref<const std::string&>());
  if (!tokens) return error_answer({tokens.error(), "prompt"});
  const bool begins_with_bos = !tokens->empty() && tokens->front() == tokenizer.bos();
  if (begins_with_bos && !flag_of(*body, "add_special_tokens", true))
    tokens->erase(tokens->begin());
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

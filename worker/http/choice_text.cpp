#include "worker/http/choice_text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace leasehold::http {
namespace {

/// Bytes that begin a character of UTF-8.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string echo_of(const wire::RequestSubmit& submit, const Tokenizer& tokenizer) {
  if (submit.prompt) return *submit.prompt;
  std::string text;
  for (const std::int32_t token : submit.prompt_tokens.value_or(std::vector<std::int32_t>{}))
    if (tokenizer.contains(token)) text += tokenizer.piece(token);  // the worker refuses others
  return text;
}

}  // namespace

ChoiceText::ChoiceText(std::uint32_t index, const ApiRequest& request,
                       const wire::RequestSubmit& submit, const Tokenizer& tokenizer)
    : index_(index), tokenizer_(&tokenizer) {
  if (request.echo) echo_ = echo_of(submit, tokenizer);
}

ChoicePart ChoiceText::part_of(std::string_view text) {
  ChoicePart part{.index = index_, .text = std::exchange(echo_, {})};
  part.text += text;
  return part;
}

/// Tokens without a text, such as the end of a turn, have a name.
TextLogprob ChoiceText::text_logprob(std::int32_t token, float logprob) const {
  if (!tokenizer_->contains(token)) return {.logprob = logprob};
  const std::string_view piece = tokenizer_->piece(token);
  return {.text = std::string(piece.empty() ? tokenizer_->text(token) : piece), .logprob = logprob};
}

ChoicePart ChoiceText::add(const wire::TokenEmitted& token) {
  ChoicePart part = part_of(token.text);
  if (!token.logprob) return part;
  TokenLogprobs logprobs{.token = text_logprob(token.token, *token.logprob),
                         .text_offset = text_offset_};
  for (const wire::TokenLogprob& top : token.top_logprobs)
    logprobs.top.push_back(text_logprob(top.token, top.logprob));
  text_offset_ += characters(logprobs.token.text);
  part.logprobs.push_back(std::move(logprobs));
  return part;
}

ChoicePart ChoiceText::end(std::string_view rest, std::string_view completion_reason) {
  ChoicePart part = part_of(rest);
  part.finish_reason = finish_reason(completion_reason);
  return part;
}

void append(ChoicePart& whole, ChoicePart part) {
  whole.index = part.index;
  whole.text += part.text;
  std::ranges::move(part.logprobs, std::back_inserter(whole.logprobs));
  whole.finish_reason = part.finish_reason;
}

}  // namespace leasehold::http

#include "worker/http/api/emitted_tokens.hpp"

#include <fmt/format.h>

#include "worker/http/api/sampling_fields.hpp"

namespace leasehold::http {
namespace {

/// What decides where a text ends and how much of it is held back.
SamplingParams ends_of(const wire::Sampling& sampling) {
  SamplingParams params;
  params.min_tokens = sampling.min_tokens;
  params.includes_stop = sampling.include_stop_str_in_output;
  params.stop = sampling.stop.all;
  return params;
}

Read<std::vector<std::int32_t>> tokens_of(const Field& list, std::uint32_t n_vocab,
                                          std::uint32_t most) {
  if (!list.is_array()) {
    const std::string sent = list ? shown(list.json()) : "null";
    return list.refuse(fmt::format("{} is a list of token ids, got {}", list.path(), sent));
  }
  const std::size_t count = list.json().size();
  if (count > most) {
    return list.refuse(
        fmt::format("{} has {} tokens, and the text has at most {}; send those that "
                    "were sent for this request",
                    list.path(), count, most));
  }
  std::vector<std::int32_t> tokens;
  tokens.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Field token = list.at(i);
    if (!token) return token.refuse(fmt::format("{} is a token id, got null", token.path()));
    tokens.push_back(TRY(token_id(token, n_vocab)));
  }
  return tokens;
}

}  // namespace

Read<void> read_emitted(const Field& field, std::uint32_t n_vocab, ApiRequest& request) {
  if (!field) return {};
  if (!field.is_array()) {
    return field.refuse(
        fmt::format("emitted is a list with a list of token ids for each choice, "
                    "got {}",
                    shown(field.json())));
  }
  const std::size_t lists = field.json().size();
  if (lists > choices_of(request)) {
    return field.refuse(
        fmt::format("emitted has {} lists, and the answer has {} choices; send one "
                    "list for each",
                    lists, choices_of(request)));
  }
  for (std::size_t i = 0; i < lists; ++i)
    request.emitted.push_back(
        TRY(tokens_of(field.at(i), n_vocab, request.submit.max_emitted_tokens)));
  return {};
}

std::span<const std::int32_t> emitted_of(const ApiRequest& request, std::size_t choice) {
  if (choice >= request.emitted.size()) return {};
  return request.emitted[choice];
}

bool generates_again(const ApiRequest& request) {
  const bool repeats = !request.stream || request.api == Api::Responses;
  return request.submit.prompt_logprobs || (request.submit.sampling.logprobs && repeats);
}

EmittedMessages::EmittedMessages(const wire::RequestSubmit& submit, const Tokenizer& tokenizer)
    : tokenizer_(&tokenizer),
      has_logprobs_(submit.sampling.logprobs),
      text_(tokenizer, ends_of(submit.sampling)) {}

wire::TokenEmitted EmittedMessages::next(std::int32_t token) {
  wire::TokenEmitted message{.request = {}, .token = token, .position = position_++};
  if (tokenizer_->contains(token)) message.text = text_.push(token);
  if (has_logprobs_) message.logprob = 0.0f;
  return message;
}

}  // namespace leasehold::http

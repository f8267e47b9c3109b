#include "worker/serve/request_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "worker/serve/request_ids.hpp"

namespace leasehold {

Result<PromptRequest> RequestParser::read(const wire::Generate& ask, const LeaseClaim& claim) {
  SamplingParams sampling = TRY(read_sampling(ask, *prompt_.tokenizer));
  PromptRequest request{.tenant = claim.tenant,
                        .lease = claim.lease,
                        .request = to_engine_request_id(claim.tenant, ask.request_id),
                        .emitted = ask.emitted,
                        .rebound_from = ask.rebound_from,
                        .sampling = std::move(sampling),
                        .max_emitted_tokens = ask.max_emitted_tokens};
  const auto is_unknown = [this](TokenId token) { return !prompt_.tokenizer->contains(token); };
  if (std::ranges::any_of(ask.emitted, is_unknown)) {
    return fail(Errc::BadRequest,
                fmt::format("token ids go from 0 to {}", prompt_.tokenizer->n_vocab() - 1));
  }
  request.prompt = TRY(prompt_.read(ask, std::time(nullptr)));
  if (!fits_context(request, prompt_.max_context)) {
    return fail(Errc::PromptTooLong, fmt::format("{} tokens, {} holds {}",
                                                 request.prompt.size() + request.emitted.size(),
                                                 prompt_.what_holds_a_text(), prompt_.max_context));
  }
  request.constraint = TRY(constraints_.read(request.sampling.grammar));
  return request;
}

std::size_t size_bytes(const wire::Generate& ask) {
  std::size_t size = sizeof(ask) + ask.sampling.grammar.size() +
                     ask.sampling.response_format.schema.size() +
                     ask.emitted.size() * sizeof(TokenId);
  if (ask.prompt) size += ask.prompt->size();
  if (ask.prompt_tokens) size += ask.prompt_tokens->size() * sizeof(TokenId);
  for (const std::string& stop : ask.sampling.stop.all) size += sizeof(stop) + stop.size();
  size += (ask.sampling.stop_token_ids.size() + ask.sampling.logit_bias.by_token.size()) *
          sizeof(double);
  if (!ask.messages) return size;
  for (const wire::ChatMessage& message : *ask.messages)
    size += sizeof(message) + message.role.size() + message.content.size();
  return size;
}

}  // namespace leasehold

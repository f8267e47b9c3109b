#include "worker/serve/request_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "worker/kv/request_ids.hpp"

namespace leasehold {

Result<PromptRequest> RequestParser::parse(const wire::RequestSubmit& wire_request,
                                           const LeaseClaim& claim) {
  SamplingParams sampling = TRY(parse_sampling(wire_request, *prompt_.tokenizer));
  PromptRequest request{
      .tenant = claim.tenant,
      .lease = claim.lease,
      .engine_request_id = to_engine_request_id(claim.tenant, wire_request.request_id),
      .emitted = wire_request.emitted,
      .rebound_from = wire_request.rebound_from,
      .sampling = std::move(sampling),
      .max_emitted_tokens = wire_request.max_emitted_tokens,
      .may_shorten = wire_request.may_shorten,
      .priority = wire_request.priority};
  TRY(check_token_ids(wire_request.emitted, prompt_.tokenizer->n_vocab()));
  request.prompt = TRY(prompt_.encode(wire_request, std::time(nullptr)));
  if (!fits_context(request, prompt_.max_context)) {
    return fail(Errc::PromptTooLong,
                fmt::format("the prompt has {} tokens, and {} holds {}; shorten it",
                            request.prompt.size() + request.emitted.size(),
                            name(prompt_.context_bound), prompt_.max_context));
  }
  request.constraint = TRY(constraints_.compile(request.sampling.grammar));
  return request;
}

std::size_t size_bytes(const wire::RequestSubmit& wire_request) {
  std::size_t size = sizeof(wire_request) + wire_request.sampling.grammar.size() +
                     wire_request.sampling.regex.size() +
                     wire_request.sampling.response_format.schema.size() +
                     wire_request.emitted.size() * sizeof(TokenId);
  if (wire_request.prompt) size += wire_request.prompt->size();
  if (wire_request.prompt_tokens) size += wire_request.prompt_tokens->size() * sizeof(TokenId);
  for (const std::string& stop : wire_request.sampling.stop.all)
    size += sizeof(std::string) + stop.size();
  size += (wire_request.sampling.stop_token_ids.size() +
           wire_request.sampling.logit_bias.by_token.size()) *
          sizeof(double);
  size += wire_request.tools.size() + wire_request.chat_template_kwargs.size();
  if (!wire_request.messages) return size;
  for (const wire::ChatMessage& message : *wire_request.messages)
    size += sizeof(message) + message.role.size() + message.content.value_or("").size() +
            message.tool_calls.size() + message.tool_call_id.size() + message.name.size() +
            message.reasoning_content.size();
  return size;
}

}  // namespace leasehold

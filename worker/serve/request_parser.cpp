#include "worker/serve/request_parser.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "common/expects.hpp"
#include "worker/kv/request_ids.hpp"

namespace leasehold {
namespace {

/// BLAKE2b of the submission without the fields that may differ between two submissions of one
/// request (RequestSubmit::resumable). Takes milliseconds for a long prompt.
BodyDigest digest_of(const wire::RequestSubmit& submission) {
  wire::RequestSubmit body = submission;
  body.token.clear();
  body.emitted.clear();
  body.rebound_from.reset();
  body.adapter_digest.clear();
  body.asked_at_unix_s.reset();
  body.x_request_id.clear();
  body.traceparent.clear();
  if (body.may_shorten) body.max_emitted_tokens = 0;
  const std::string text = body.to_json().dump();
  BodyDigest digest;
  static_assert(digest.size() == crypto_generichash_BYTES);
  const int rc = ::crypto_generichash(
      reinterpret_cast<unsigned char*>(digest.data()), digest.size(),
      reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr, 0);
  ensures(rc == 0, "BLAKE2b accepts every text");
  return digest;
}

}  // namespace

RequestId IncomingRequest::engine_request_id() const {
  return to_engine_request_id(claim.tenant, submit.request_id);
}

Result<void> RequestParser::parse(IncomingRequest& incoming) {
  const wire::RequestSubmit& submit = incoming.submit;
  if (!incoming.joins) {
    incoming.prompt = TRY(parse_prompt(incoming));
    // The messages of a resumable request go to the ResumableStreams.
    incoming.text.emplace(submit.resumable ? std::weak_ptr<control::Peer>() : incoming.peer,
                          submit.request_id,
                          GeneratedText(*prompt_.tokenizer, incoming.prompt.sampling));
    incoming.before = incoming.text->continue_after(incoming.prompt.emitted);
  }
  if (!submit.resumable) return {};
  incoming.body = digest_of(submit);
  if (!incoming.repeats || *incoming.repeats == incoming.body) return {};
  return std::unexpected(id_conflict(submit.request_id, "another body"));
}

Result<PromptRequest> RequestParser::parse_prompt(const IncomingRequest& incoming) {
  const wire::RequestSubmit& submit = incoming.submit;
  SamplingParams sampling = TRY(parse_sampling(submit, *prompt_.tokenizer));
  PromptRequest request{.tenant = incoming.claim.tenant,
                        .lease = incoming.claim.lease,
                        .engine_request_id = incoming.engine_request_id(),
                        .emitted = submit.emitted,
                        .rebound_from = submit.rebound_from,
                        .sampling = std::move(sampling),
                        .adapter = {.name = submit.adapter, .continued = submit.adapter_digest},
                        .max_emitted_tokens = submit.max_emitted_tokens,
                        .may_shorten = submit.may_shorten,
                        .prompt_logprobs = submit.prompt_logprobs,
                        .reported_positions = submit.received_prompt_positions,
                        .priority = submit.priority};
  if (submit.embedding) request.embedding = TRY(parse_embedding(*submit.embedding, embeddings_));
  if (submit.deadline_ms)
    request.deadline = incoming.submitted_at + std::chrono::milliseconds(*submit.deadline_ms);
  TRY(check_token_ids(request.emitted, prompt_.tokenizer->n_vocab()));
  request.prompt = TRY(prompt_.encode(submit, std::time(nullptr)));
  if (!fits_context(request, prompt_.max_context)) {
    return fail(Errc::PromptTooLong,
                fmt::format("the prompt has {} tokens, and {} holds {}; shorten it",
                            request.prompt.size() + request.emitted.size(),
                            name(prompt_.context_bound), prompt_.max_context));
  }
  TRY(check_prompt_logprobs(request));
  request.constraint = TRY(constraints_.compile(request.sampling.grammar));
  return request;
}

Result<void> check_prompt_logprobs(const PromptRequest& request) {
  const std::size_t tokens = request.prompt.size();
  if (request.reported_positions > tokens) {
    return fail(Errc::BadRequest,
                fmt::format("received_prompt_positions is {}, and the prompt has {} tokens; send "
                            "the positions that arrived",
                            request.reported_positions, tokens));
  }
  if (!request.prompt_logprobs) return {};
  constexpr std::size_t kMost = wire::RequestSubmit::kMaxPromptLogprobs;
  const std::size_t values = tokens * (1 + *request.prompt_logprobs);
  if (values <= kMost) return {};
  return fail(Errc::BadRequest,
              fmt::format("{} prompt tokens with {} alternatives each make {} log probabilities, "
                          "and a request may have {}; ask for fewer alternatives or send a "
                          "shorter prompt",
                          tokens, *request.prompt_logprobs, values, kMost));
}

Error id_conflict(const RequestId& client_request_id, std::string_view difference) {
  return {.code = Errc::RequestIdConflict,
          .detail = fmt::format("request {} was submitted before with {}; choose another id",
                                client_request_id.value, difference)};
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

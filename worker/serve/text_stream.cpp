#include "worker/serve/text_stream.hpp"

#include "ipc/control/messages/embedding_text.hpp"
#include "ipc/control/messages/token_line.hpp"

namespace leasehold {
namespace {

/// An engine error is sent under its own name, so that programs can act on it.
std::string_view reason_on_the_wire(const Completed& completed) {
  const bool named = completed.reason == CompletionReason::EngineError && completed.error;
  return named ? name(completed.error->code) : name(completed.reason);
}

std::vector<wire::TokenLogprob> top_of(const Logprobs& logprobs) {
  std::vector<wire::TokenLogprob> all;
  for (const TokenLogprob& top : logprobs.top) all.push_back({top.token, top.logprob});
  return all;
}

}  // namespace

void notify_token(control::Peer& peer, const wire::TokenEmitted& token) {
  if (auto line = control::token_line(token)) return peer.notify_line(*std::move(line));
  peer.notify(std::string(wire::TokenEmitted::kMethod), {.body = token.to_json()});
}

TextStream::TextStream(std::weak_ptr<control::Peer> peer, RequestId client_request_id,
                       GeneratedText text)
    : peer_(std::move(peer)),
      client_request_id_(std::move(client_request_id)),
      text_(std::move(text)) {}

std::vector<wire::TokenEmitted> TextStream::continue_after(std::span<const TokenId> emitted) {
  std::vector<wire::TokenEmitted> messages;
  for (const TokenId token : emitted) {
    messages.push_back({.request = client_request_id_,
                        .token = token,
                        .position = static_cast<std::uint32_t>(messages.size()),
                        .text = text_.push(token)});
  }
  return messages;
}

wire::TokenEmitted TextStream::send_token(const Token& token) {
  wire::TokenEmitted message{.request = client_request_id_,
                             .token = token.token,
                             .position = token.position,
                             .text = text_.push(token.token)};
  if (token.logprobs) {
    message.logprob = token.logprobs->chosen;
    message.top_logprobs = top_of(*token.logprobs);
  }
  if (const auto peer = peer_.lock()) notify_token(*peer, message);
  return message;
}

void TextStream::send_prompt_logprobs(const PromptLogprobs& logprobs) {
  wire::PromptLogprobs message{
      .request = client_request_id_, .position = logprobs.position, .tokens = {}};
  for (const PromptToken& each : logprobs.tokens) {
    wire::PromptToken& token = message.tokens.emplace_back();
    token.token = each.token;
    if (!each.logprobs) continue;
    token.logprob = each.logprobs->chosen;
    token.top_logprobs = top_of(*each.logprobs);
  }
  notify(message);
}

std::size_t TextStream::unread_output_bytes() const {
  const auto peer = peer_.lock();
  return peer ? peer->queued_bytes() : 0;
}

wire::RequestCompleted TextStream::send_completed(const Completed& completed, std::string detail) {
  wire::RequestCompleted message{.request = client_request_id_,
                                 .reason = std::string(reason_on_the_wire(completed)),
                                 .emitted_tokens = completed.emitted_tokens,
                                 .detail = std::move(detail),
                                 .cached_tokens = completed.cached_tokens};
  if (!completed.embedding.empty()) message.embedding = wire::embedding_text(completed.embedding);
  if (!completed.revocation) message.text = text_.finish();
  if (completed.revocation) {
    message.lease = completed.revocation->lease;
    message.scope = name(completed.revocation->scope);
    message.revoke_reason = name(completed.revocation->reason);
  }
  if (completed.error) {
    message.scope = name(completed.error->scope);
    const std::string code(name(completed.error->code));
    message.detail = (message.reason == code ? "" : code + ": ") + completed.error->detail;
  }
  notify(message);
  return message;
}

void TextStream::send_preempted(const Preempted& preempted) {
  const wire::RequestPreempted message{.request = client_request_id_,
                                       .cause = std::string(name(preempted.cause)),
                                       .freed_blocks = preempted.freed_blocks,
                                       .swapped_blocks = preempted.swapped_blocks,
                                       .emitted_tokens = preempted.emitted_tokens};
  notify(message);
}

wire::RequestCompleted TextStream::send_rejected(const AdmissionRejected& rejected) {
  wire::RequestCompleted message{.request = client_request_id_,
                                 .reason = std::string(name(rejected.reason.code)),
                                 .emitted_tokens = rejected.emitted_tokens,
                                 .lease = rejected.lease,
                                 .scope = std::string(name(rejected.reason.scope)),
                                 .detail = rejected.reason.detail,
                                 .retry_after_ms = rejected.reason.retry_after_ms};
  notify(message);
  return message;
}

template <class Message>
void TextStream::notify(const Message& message) {
  if (const auto peer = peer_.lock())
    peer->notify(std::string(Message::kMethod), {.body = message.to_json()});
}

}  // namespace leasehold

#include "tools/client/text.hpp"

#include <utility>
#include <variant>

#include "ipc/control/messages/embedding_text.hpp"

namespace leasehold::api {

Error to_api(const leasehold::Error& error) {
  return {.code = std::string(name(error.code)),
          .detail = error.detail,
          .next = std::string(error_hint(error.code)),
          .scope = std::string(name(error.scope)),
          .retryable = is_retryable(error.code),
          .retry_after = std::chrono::milliseconds(error.retry_after_ms)};
}

namespace {

Token to_token(const wire::TokenEmitted& emitted) {
  Token token{.position = emitted.position,
              .id = emitted.token,
              .text = emitted.text,
              .logprob = emitted.logprob};
  for (const wire::TokenLogprob& top : emitted.top_logprobs)
    token.top_logprobs.push_back({.id = top.token, .logprob = top.logprob});
  return token;
}

}  // namespace

void Text::take(const client::SessionEvent& event) {
  const std::lock_guard lock(mutex_);
  if (const auto* submitted = std::get_if<client::Submitted>(&event)) {
    note_lease(submitted->lease);
    completed_.prompt_tokens = submitted->prompt_tokens;
    if (!submitted->unchecked.empty()) completed_.unchecked = submitted->unchecked;
  }
  if (const auto* rebound = std::get_if<client::Rebound>(&event)) note_lease(rebound->new_lease);
  if (const auto* token = std::get_if<client::TokenArrived>(&event)) {
    unread_.push_back(to_token(token->token));
    changed_.notify_all();
  }
  if (const auto* ended = std::get_if<client::Ended>(&event)) end(*ended);
}

void Text::note_lease(LeaseId lease) {
  std::string id = to_string(lease);
  if (completed_.leases.empty() || completed_.leases.back() != id)
    completed_.leases.push_back(std::move(id));
}

void Text::end(const client::Ended& ended) {
  completed_.reason = ended.reason;
  completed_.text = ended.text;
  completed_.note = ended.note;
  completed_.tokens = ended.delivered_tokens;
  embedding_ = ended.embedding;
  ended_.emplace(ended.error ? Result<Completed>(to_api(*ended.error)) : completed_);
  changed_.notify_all();
}

std::optional<Token> Text::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !unread_.empty() || ended_; });
  if (unread_.empty()) return std::nullopt;
  Token token = std::move(unread_.front());
  unread_.pop_front();
  return token;
}

Result<Completed> Text::result() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_.has_value(); });
  unread_.clear();
  return *ended_;
}

Result<std::vector<float>> Text::embedding() {
  const auto completed = result();
  if (!completed) return completed.error();
  const std::lock_guard lock(mutex_);
  auto vector = wire::embedding_of(embedding_);
  if (!vector) return to_api(vector.error());
  return *std::move(vector);
}

bool Text::has_ended() const {
  const std::lock_guard lock(mutex_);
  return ended_.has_value();
}

}  // namespace leasehold::api

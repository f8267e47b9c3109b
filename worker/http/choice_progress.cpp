#include "worker/http/choice_progress.hpp"

#include <fmt/format.h>

#include <utility>

#include "ipc/http/http_errors.hpp"

namespace leasehold::http {
namespace {

template <class... Kinds>
bool is_any_of(const client::SessionEvent& event) {
  return (std::holds_alternative<Kinds>(event) || ...);
}

std::size_t values_of(const wire::PromptLogprobs& prompt) {
  std::size_t values = 0;
  for (const wire::PromptToken& token : prompt.tokens) values += 1 + token.top_logprobs.size();
  return values;
}

Error too_many_logprobs() {
  return {Errc::BadRequest,
          fmt::format("the prompts of this answer have more than {} log probabilities, "
                      "alternatives included; send fewer prompts or ask for fewer alternatives",
                      wire::RequestSubmit::kMaxPromptLogprobs)};
}

}  // namespace

std::optional<Error> ChoiceProgress::note(const Generations::Event& event) {
  using namespace client;
  Choice& choice = choices_[event.index];
  if (is_any_of<Interrupted, Retrying>(event.event)) choice.lacks_lease = true;
  if (is_any_of<Submitted, Rebound, PromptLogprobsArrived, TokenArrived, Ended>(event.event))
    choice.lacks_lease = false;
  if (const auto* submitted = std::get_if<Submitted>(&event.event)) {
    choice.runs = true;
    choice.prompt_tokens = submitted->prompt_tokens;
    // Count each prompt once: its choices share it, and a rebind reads it again.
    const bool is_new = event.index % per_prompt_ == 0 && !std::exchange(choice.is_counted, true);
    if (is_new) usage_.prompt_tokens += submitted->prompt_tokens;
  }
  if (const auto* prompt = std::get_if<PromptLogprobsArrived>(&event.event)) {
    prompt_logprobs_ += values_of(prompt->logprobs);
    if (prompt_logprobs_ > wire::RequestSubmit::kMaxPromptLogprobs) return too_many_logprobs();
  }
  if (is_any_of<TokenArrived>(event.event)) {
    note_token(event.index);
    has_generated_ = true;
  }
  if (const auto* ended = std::get_if<Ended>(&event.event)) {
    ++ended_;
    choice.has_ended = true;
    if (event.index % per_prompt_ == 0) usage_.cached_tokens += ended->cached_tokens;
  }
  const auto* retrying = std::get_if<Retrying>(&event.event);
  if (retrying == nullptr) return std::nullopt;
  choice.runs = false;
  if (has_generated_ || any_runs()) return std::nullopt;
  const Errc code = retrying->error.code;
  const bool is_full = code == Errc::QueueFull || code == Errc::Draining;
  if (status_of(retrying->error) != 429 && !is_full) return std::nullopt;
  return retrying->error;
}

void ChoiceProgress::note_token(std::size_t index) {
  ++usage_.completion_tokens;
  ++choices_[index].emitted_tokens;
}

std::vector<RunningChoice> ChoiceProgress::running(std::span<const RequestId> ids) const {
  std::vector<RunningChoice> running;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    if (choice.has_ended) continue;
    running.push_back({.engine_request_id = ids[i],
                       .prompt_tokens = choice.prompt_tokens,
                       .emitted_tokens = choice.emitted_tokens,
                       .awaits_lease = choice.lacks_lease});
  }
  return running;
}

}  // namespace leasehold::http

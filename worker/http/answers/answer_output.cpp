#include "worker/http/answers/answer_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ipc/http/message_errors.hpp"

namespace leasehold::http {
namespace {

/// The request field that a worker's refusal concerns, or empty if the error does not show it.
std::string param_of(const Error& error, Api api) {
  const bool is_emitted = error.code == Errc::BadRequest && error.detail.contains("emitted token ");
  if (is_emitted) return "emitted";
  if (error.code != Errc::PromptTooLong) return {};
  if (api == Api::Responses) return "input";
  return api == Api::Completions ? "prompt" : "messages";
}

}  // namespace

AnswerOutput::AnswerOutput(const ApiRequest& request)
    : request_(request), writer_(answer_writer(request, request.model, request.created_unix_s)) {}

/// For a returning client, the text is generated or replayed from its beginning, but the events
/// that the client already has are not sent.
void AnswerOutput::add_events(ServerEvents events, std::uint32_t position) {
  if (ids_) ids_->number(position, events);
  std::ranges::move(events, std::back_inserter(unsent_));
}

void AnswerOutput::add_comment(std::string comment) {
  unsent_.push_back({.data = {}, .comment = std::move(comment)});
}

void AnswerOutput::add(ChoicePart part, const wire::TokenEmitted& token, UsageCount usage) {
  const std::uint32_t choice = part.index;
  const std::size_t before = unsent_.size();
  add_events(writer_->add(std::move(part), usage), token.position);
  if (!is_continuable()) return;
  if (unsent_.size() == before) unsent_.emplace_back();
  unsent_.back().comment = fmt::format("t {} {} {}", choice, token.position, token.token);
}

void AnswerOutput::name_adapter(std::size_t choice, std::string_view digest) {
  if (is_continuable() && !digest.empty()) add_comment(fmt::format("a {} {}", choice, digest));
}

void AnswerOutput::end_choice(ChoicePart part, std::uint32_t position, UsageCount usage) {
  if (is_continuable()) return ends_.push_back({std::move(part), position});
  add_events(writer_->add(std::move(part), usage), position);
}

void AnswerOutput::end(std::uint32_t position, UsageCount usage) {
  is_answered_ = is_whole_ = true;
  std::ranges::sort(ends_, {}, [](const ChoiceEnd& end) { return end.part.index; });
  for (ChoiceEnd& ended : std::exchange(ends_, {}))
    add_events(writer_->add(std::move(ended.part), usage), ended.position);
  if (request_.stream) {
    add_events(writer_->end(usage), position);
    if (is_continuable()) add_comment("e");
    return;
  }
  auto work = [writer = writer_, usage] { return writer->whole(usage); };
  const bool is_long = request_.submit.sampling.logprobs || request_.submit.prompt_logprobs;
  if (is_long) {
    body_work_ = std::move(work);
  } else {
    set_body(work());
  }
}

std::function<std::string()> AnswerOutput::take_body_work() {
  return std::exchange(body_work_, nullptr);
}

void AnswerOutput::set_body(std::string body) {
  if (!is_continuable()) {
    answer_ = Answer{.body = std::move(body)};
    return;
  }
  unsent_.push_back({.data = std::move(body), .name = "answer"});
  add_comment("e");
}

void AnswerOutput::fail_with(const Error& error, const std::string& x_request_id) {
  is_answered_ = true;
  if (!is_begun_ && unsent_.empty()) {
    answer_ = error_answer({error, param_of(error, request_.api)});
    if (error.code == Errc::BadRequest && !request_.schema_path.empty()) refused_ = error;
    return;
  }
  std::ranges::move(failure(error, x_request_id), std::back_inserter(unsent_));
  if (is_continuable()) add_comment(fmt::format("x {} {}", name(error.code), error.retry_after_ms));
}

/// The API's events, or the body that the answer would have had.
ServerEvents AnswerOutput::failure(const Error& error, const std::string& x_request_id) {
  if (request_.stream) return writer_->failed(error);
  Answer answer = error_answer({error, param_of(error, request_.api)});
  if (request_.api == Api::Messages) answer = as_message_error(std::move(answer), x_request_id);
  return {{.data = std::move(answer.body), .name = "error"}};
}

void AnswerOutput::beat() {
  if (is_continuable()) return add_comment("b");
  std::ranges::move(writer_->beat(), std::back_inserter(unsent_));
}

ServerEvents AnswerOutput::take_events() {
  is_begun_ = true;
  written_at_ = std::chrono::steady_clock::now();
  return std::exchange(unsent_, {});
}

}  // namespace leasehold::http

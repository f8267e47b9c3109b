#include "worker/http/answer_driver.hpp"

#include <ctime>

#include "worker/http/api_answer.hpp"
#include "worker/http/generation.hpp"

namespace leasehold::http {
namespace {

using boost::asio::awaitable;

constexpr const char* kDone = "[DONE]";

// GCC 12 destroys braced temporaries of a co_await expression twice, so answers are made by calls.

Answer ok(std::string body) {
  return {.body = std::move(body)};
}

std::string error_event(const Error& error) {
  return error_body({error});
}

std::optional<Error> error_of(const client::Ended& ended, const Generation& generation) {
  if (generation.was_unread())
    return Error{Errc::QueueFull, "too much of the stream was unread; read faster"};
  if (ended.error) return ended.error;
  if (ended.reason != "Cancelled") return std::nullopt;
  return Error{Errc::Draining, "the request was cancelled; this worker is stopping"};
}

class AnswerDriver {
 public:
  AnswerDriver(Shared& shared, const ApiRequest& request, HttpStream& stream)
      : shared_(shared),
        stream_(stream),
        writer_(request, shared.deps.model.name, std::time(nullptr)) {}

  awaitable<void> run(const Caller& caller, ApiRequest request);

 private:
  awaitable<void> answer_whole();
  awaitable<void> answer_stream();
  awaitable<void> begin_stream();
  std::optional<Answer> note(const client::SessionEvent& event);
  bool goes_on() const { return !stream_.is_gone() && !shared_.closing; }

  Shared& shared_;
  HttpStream& stream_;
  AnswerWriter writer_;
  std::shared_ptr<Generation> generation_;
  UsageCount usage_;
};

awaitable<void> AnswerDriver::run(const Caller& caller, ApiRequest request) {
  const bool streams = request.stream;
  client::SessionConfig config;
  config.broker_path = shared_.deps.broker_socket;
  config.tenant = caller.tenant;
  config.worker = shared_.deps.worker;
  config.api_key = caller.key;
  config.rebind = true;
  config.request = std::move(request.submit);
  generation_ = Generation::start(*shared_.deps.io, shared_.timers, std::move(config));
  stream_.watch([generation = generation_] { generation->wake(); });
  if (streams) {
    co_await answer_stream();
  } else {
    co_await answer_whole();
  }
  generation_->cancel();
}

/// Counts. Returns the answer to a request that a quota holds back before its first token.
std::optional<Answer> AnswerDriver::note(const client::SessionEvent& event) {
  if (const auto* submitted = std::get_if<client::Submitted>(&event);
      submitted != nullptr && usage_.prompt_tokens == 0)
    usage_.prompt_tokens = submitted->prompt_tokens;
  if (std::holds_alternative<client::TokenArrived>(event)) ++usage_.completion_tokens;
  const auto* retrying = std::get_if<client::Retrying>(&event);
  if (retrying == nullptr || usage_.completion_tokens > 0) return std::nullopt;
  const Errc code = retrying->error.code;
  if (status_of(code) != 429 && code != Errc::QueueFull) return std::nullopt;
  return error_answer({retrying->error});
}

awaitable<void> AnswerDriver::answer_whole() {
  std::string text;
  while (goes_on()) {
    const auto event = co_await generation_->next();
    if (!event) continue;
    if (auto refused = note(*event)) co_return co_await stream_.send(*std::move(refused));
    if (const auto* token = std::get_if<client::TokenArrived>(&*event)) text += token->token.text;
    const auto* ended = std::get_if<client::Ended>(&*event);
    if (ended == nullptr) continue;
    if (const auto error = error_of(*ended, *generation_))
      co_return co_await stream_.send(refusal(*error));
    text += ended->text;
    co_return co_await stream_.send(ok(writer_.whole(text, finish_reason(ended->reason), usage_)));
  }
}

awaitable<void> AnswerDriver::begin_stream() {
  co_await stream_.begin_events();
  if (auto opening = writer_.opening()) co_await stream_.write_event(*std::move(opening));
}

awaitable<void> AnswerDriver::answer_stream() {
  bool began = false;
  while (goes_on()) {
    const auto event = co_await generation_->next();
    if (!event) continue;
    if (auto refused = note(*event); refused && !began)
      co_return co_await stream_.send(*std::move(refused));
    const auto* token = std::get_if<client::TokenArrived>(&*event);
    const auto* ended = std::get_if<client::Ended>(&*event);
    if (token == nullptr && ended == nullptr) continue;
    const auto error = ended == nullptr ? std::nullopt : error_of(*ended, *generation_);
    if (error && !began) co_return co_await stream_.send(refusal(*error));
    if (!std::exchange(began, true)) co_await begin_stream();
    if (token != nullptr) {
      co_await stream_.write_event(writer_.text(token->token.text, usage_));
      continue;
    }
    if (error) co_await stream_.write_event(error_event(*error));
    if (!error) {
      co_await stream_.write_event(writer_.end(ended->text, finish_reason(ended->reason), usage_));
      if (auto usage = writer_.usage(usage_)) co_await stream_.write_event(*std::move(usage));
    }
    co_await stream_.write_event(kDone);
    co_return co_await stream_.end_events();
  }
}

awaitable<void> drive(Shared& shared, const Caller& caller, ApiRequest request,
                      HttpStream& stream) {
  AnswerDriver driver(shared, request, stream);
  co_await driver.run(caller, std::move(request));
}

}  // namespace

awaitable<void> answer_request(Shared& shared, const Caller& caller, ApiRequest request,
                               HttpStream& stream) {
  return drive(shared, caller, std::move(request), stream);
}

}  // namespace leasehold::http

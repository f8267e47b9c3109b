#include "worker/http/answers/answer_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "common/machine/confined.hpp"
#include "worker/http/answers/answer_output.hpp"
#include "worker/http/answers/answer_run.hpp"
#include "worker/http/api/choice_text.hpp"
#include "worker/http/api/emitted_tokens.hpp"
#include "worker/http/on_pool.hpp"
#include "worker/http/session_config.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::http {
namespace {

using boost::asio::awaitable;

bool is_refused(const wire::ResponseFormat& format) {
  const auto kind = format.strict ? GrammarKind::JsonSchema : GrammarKind::LenientJsonSchema;
  return !catch_request_errors([&] { return compile_grammar(GrammarSource{kind, format.schema}); });
}

class AnswerDriver {
 public:
  AnswerDriver(Shared& shared, Caller caller, ApiRequest request, HttpStream& stream)
      : shared_(shared),
        stream_(stream),
        caller_(std::move(caller)),
        request_(std::move(request)),
        run_(shared, stream, caller_, ChoiceProgress(choices_of(request_), request_.n)),
        output_(request_) {}
  AnswerDriver(const AnswerDriver&) = delete;
  AnswerDriver& operator=(const AnswerDriver&) = delete;

  awaitable<void> run();

 private:
  awaitable<void> take_emitted(std::uint32_t choice, const wire::RequestSubmit& submit);
  awaitable<void> flush();
  awaitable<void> write_events();
  std::optional<Duration> time_to_heartbeat() const;
  void take_waiting();
  void take(Generations::Event event);
  void take(std::size_t choice, const wire::TokenEmitted& token);
  void fail_with(const Error& error);
  awaitable<void> name_schema(Error refused);
  awaitable<void> write_body(std::function<std::string()> work);
  std::function<void()> keep_lease() const;
  void stop_generating();
  Error unknown_event(std::uint32_t last) const;
  std::optional<Error> error_of(const client::Ended& ended) const;
  bool goes_on() const { return !output_.is_answered() && !stream_.is_gone() && !shared_.closing; }

  Shared& shared_;
  HttpStream& stream_;
  Caller caller_;
  ApiRequest request_;
  AnswerRun run_;
  std::vector<ChoiceText> texts_;
  AnswerOutput output_;
  std::vector<RequestId> request_ids_;  // of the choices, in the worker
};

Error AnswerDriver::unknown_event(std::uint32_t last) const {
  return {Errc::BadRequest,
          fmt::format("Last-Event-ID is {}, and the last event of request {} has "
                      "{}; send the request without it",
                      *caller_.last_event_id, request_.submit.request_id.value, last)};
}

awaitable<void> AnswerDriver::run() {
  if (request_.stream && request_.submit.resumable) {
    auto ids = EventIds::after(caller_.last_event_id, how_computed(request_, shared_.deps.model),
                               request_.created_unix_s);
    if (!ids) co_return co_await stream_.send(refusal(ids.error()));
    output_.set_ids(*std::move(ids));
  }
  std::vector<client::SessionConfig> configs;
  for (std::uint32_t i = 0; i < choices_of(request_); ++i) {
    configs.push_back(
        session_config(shared_, caller_, stream_.labels(), submission_of(request_, i)));
    request_ids_.push_back(wire::id_in_worker(caller_.tenant, configs.back().request.request_id));
    texts_.emplace_back(i, request_, configs.back().request, *shared_.deps.tokenizer);
    co_await take_emitted(i, configs.back().request);
  }
  run_.start(std::move(configs), keep_lease());
  RunningAnswer running = run_.as_running(answer_id(request_));
  running.choices = [this] { return run_.progress().running(request_ids_); };
  const RunningAnswers::Registration registration(shared_.running_answers, std::move(running));
  while (goes_on()) {
    co_await run_.await_events(time_to_heartbeat());
    take_waiting();
    const auto ended_by = run_.must_end();
    if (ended_by && goes_on()) output_.fail_with(*ended_by, stream_.labels().x_request_id);
    if (auto refused = output_.take_refused()) co_await name_schema(*std::move(refused));
    if (auto work = output_.take_body_work()) co_await write_body(std::move(work));
    co_await flush();
    // A client that left before the end was written may come back for the end.
    if (output_.is_whole() && request_.submit.resumable && !stream_.is_gone())
      shared_.leases->finished(caller_.tenant, request_.submit.request_id);
    if (!goes_on() || time_to_heartbeat() != Duration::zero()) continue;
    output_.beat();
    co_await write_events();
  }
  stop_generating();
}

/// Lets the text follow the tokens that another host has sent. Other connections run between slices
/// of a long text.
awaitable<void> AnswerDriver::take_emitted(std::uint32_t choice,
                                           const wire::RequestSubmit& submit) {
  EmittedMessages messages(submit, *shared_.deps.tokenizer);
  for (const std::int32_t token : submit.emitted) {
    const wire::TokenEmitted message = messages.next(token);
    run_.progress().note_token(choice);
    output_.skip(texts_[choice].add(message), run_.progress().usage());
    if (message.position % AnswerRun::kMaxEventsPerTurn == AnswerRun::kMaxEventsPerTurn - 1)
      co_await boost::asio::post(*shared_.deps.io, boost::asio::use_awaitable);
  }
}

awaitable<void> AnswerDriver::flush() {
  if (auto answer = output_.take_answer()) co_return co_await stream_.send(*std::move(answer));
  if (output_.is_answered() || output_.has_events()) co_await write_events();
}

awaitable<void> AnswerDriver::write_events() {
  const auto follows =
      output_.is_answered() ? HttpStream::Follows::Nothing : HttpStream::Follows::More;
  // GCC 12 destroys braced temporaries of a co_await expression twice.
  ServerEvents events = output_.take_events();
  co_await stream_.write_events(std::move(events), follows);
}

/// How long until the stream sends a heartbeat; nothing if it sends none. A stream may be silent
/// while a prompt is read, a lease is replaced, or the tokens do not make a whole event. Before a
/// worker has accepted a choice, no heartbeat is sent, because the status may still be a refusal;
/// the beats of a continuable stream begin at once, because a gateway must tell waiting from death.
std::optional<Duration> AnswerDriver::time_to_heartbeat() const {
  if (request_.beat) return std::max(Duration::zero(), Duration(*request_.beat) - output_.silent());
  const bool is_begun = output_.is_begun() || run_.progress().any_runs();
  if (!request_.stream || !is_begun || shared_.deps.heartbeat == Duration::zero())
    return std::nullopt;
  return std::max(Duration::zero(), shared_.deps.heartbeat - output_.silent());
}

void AnswerDriver::take_waiting() {
  for (int taken = 0; taken < AnswerRun::kMaxEventsPerTurn && goes_on(); ++taken) {
    auto event = run_.generations().next();
    if (!event) return;
    take(*std::move(event));
  }
}

/// A resumable request continues without its client, so its key's lease must be kept.
std::function<void()> AnswerDriver::keep_lease() const {
  return [leases = shared_.leases, key = caller_.key_id, request = request_.submit.request_id,
          grace = shared_.deps.result_grace] { leases->keep(key, request, grace); };
}

void AnswerDriver::stop_generating() {
  if (run_.generations().was_unread()) return;  // generation has stopped already
  const bool may_resume = request_.submit.resumable && !output_.is_answered() && !shared_.closing;
  may_resume ? run_.generations().leave() : run_.generations().cancel();
}

std::optional<Error> AnswerDriver::error_of(const client::Ended& ended) const {
  if (run_.generations().was_unread())
    return Error{Errc::QueueFull,
                 output_.ids() ? "too much of the stream was unread; send the request again with "
                                 "the last id as Last-Event-ID"
                               : "too much of the stream was unread; read faster"};
  if (ended.error) return ended.error;
  if (ended.reason != "Cancelled") return std::nullopt;
  return shared_.deps.stopping;
}

void AnswerDriver::fail_with(const Error& error) {
  run_.note_failure(request_.submit.request_id, error);
  if (output_.is_begun()) stream_.note_error(error.code);
  output_.fail_with(error, stream_.labels().x_request_id);
}

void AnswerDriver::take(Generations::Event event) {
  if (const auto held_back = run_.progress().note(event)) return fail_with(*held_back);
  ChoiceText& text = texts_[event.index];
  if (const auto* submitted = std::get_if<client::Submitted>(&event.event))
    return output_.name_adapter(event.index, submitted->adapter_digest);
  if (auto* prompt = std::get_if<client::PromptLogprobsArrived>(&event.event))
    return text.add(std::move(prompt->logprobs));
  if (const auto* token = std::get_if<client::TokenArrived>(&event.event))
    return take(event.index, token->token);
  const auto* ended = std::get_if<client::Ended>(&event.event);
  if (ended == nullptr) return;
  const std::uint32_t end = ended->delivered_tokens;
  if (const auto error = error_of(*ended)) return fail_with(*error);
  if (output_.ids() && output_.ids()->is_beyond(end)) return fail_with(unknown_event(end));
  output_.end_choice(text.end(ended->text, ended->reason), end, run_.progress().usage());
  if (run_.progress().all_ended()) output_.end(end, run_.progress().usage());
}

/// A token that another host has sent arrives here only if this worker generates it again. It must
/// then be the same token.
void AnswerDriver::take(std::size_t choice, const wire::TokenEmitted& token) {
  const auto sent = emitted_of(request_, choice);
  ChoicePart part = texts_[choice].add(token);
  if (token.position >= sent.size())
    return output_.add(std::move(part), token, run_.progress().usage());
  output_.skip(std::move(part), run_.progress().usage());
  const std::int32_t expected = sent[token.position];
  if (token.token == expected) return;
  fail_with({Errc::BadRequest,
             fmt::format("emitted token {} of choice {} is {}, and this worker generates {}; "
                         "continue on a host of equal Leasehold-Identity, with the same "
                         "Leasehold-Request and Leasehold-Created",
                         token.position, choice, expected, token.token)});
}

/// The worker compiles a schema, and its refusal does not say which field is the cause. The schema
/// is compiled again, away from the thread that sends all streams.
awaitable<void> AnswerDriver::name_schema(Error refused) {
  std::move_only_function<bool()> work = [format = request_.submit.sampling.response_format] {
    return is_refused(format);
  };
  const auto is_schema = co_await on_pool<bool>(shared_, caller_.tenant, std::move(work));
  if (is_schema.value_or(false)) output_.name_schema(std::move(refused));
}

/// Without a body the server is stopping, and nothing is sent.
awaitable<void> AnswerDriver::write_body(std::function<std::string()> work) {
  std::move_only_function<std::string()> named = std::move(work);
  auto body = co_await on_pool<std::string>(shared_, caller_.tenant, std::move(named));
  if (body) output_.set_body(*std::move(body));
}

awaitable<void> drive(Shared& shared, const Caller& caller, ApiRequest request,
                      HttpStream& stream) {
  AnswerDriver driver(shared, caller, std::move(request), stream);
  co_await driver.run();
}

}  // namespace

awaitable<void> answer_request(Shared& shared, const Caller& caller, ApiRequest request,
                               HttpStream& stream) {
  return drive(shared, caller, std::move(request), stream);
}

}  // namespace leasehold::http

#include "worker/http/answer_driver.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <ctime>
#include <iterator>
#include <utility>

#include "common/machine/confined.hpp"
#include "worker/http/api/choice_text.hpp"
#include "worker/http/api/event_ids.hpp"
#include "worker/http/async_value.hpp"
#include "worker/http/choice_progress.hpp"
#include "worker/http/generations.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::http {
namespace {

using boost::asio::awaitable;

/// The most events that the driver handles before it writes and lets other connections run.
constexpr int kMaxEventsPerWrite = 64;

/// The request field that a worker's refusal concerns, or empty if the error code does not show it.
std::string param_of(const Error& error, Api api) {
  if (error.code != Errc::PromptTooLong) return {};
  if (api == Api::Responses) return "input";
  return api == Api::Completions ? "prompt" : "messages";
}

bool is_refused(const wire::ResponseFormat& format) {
  const auto kind = format.strict ? GrammarKind::JsonSchema : GrammarKind::LenientJsonSchema;
  return !catch_request_errors([&] { return compile_grammar(GrammarSource{kind, format.schema}); });
}

/// Names what the tokens of a text depend on, and the context length that ends it.
std::string how_computed(const ApiModel& model) {
  return fmt::format("{} with {} tokens of context", model.text_identity, model.max_context);
}

/// The part of the answer that the client has received, and the part that is not sent yet.
class AnswerOutput {
 public:
  explicit AnswerOutput(const ApiRequest& request)
      : request_(request), writer_(answer_writer(request, request.model, std::time(nullptr))) {}

  /// Numbers the events, so that the client can resume the stream.
  void set_ids(EventIds ids) { ids_ = std::move(ids); }
  const std::optional<EventIds>& ids() const { return ids_; }
  void add(ChoicePart part, std::uint32_t position, UsageCount usage) {
    add_events(writer_->add(std::move(part), usage), position);
  }
  void end(std::uint32_t position, UsageCount usage);
  /// Ends the whole answer, with all its choices.
  void fail_with(const Error& error);
  /// Takes the refusal that is the answer, if the schema may be its cause.
  std::optional<Error> take_refused() { return std::exchange(refused_, std::nullopt); }
  void name_schema(Error refused) {
    answer_ = error_answer({std::move(refused), request_.schema_path});
  }

  awaitable<void> flush(HttpStream& stream);
  awaitable<void> beat(HttpStream& stream);
  bool is_begun() const { return has_events_; }
  Duration silent() const { return std::chrono::steady_clock::now() - written_at_; }
  /// True if the answer ends with what is unsent.
  bool is_answered() const { return is_answered_; }
  /// True if all choices have ended without an error.
  bool is_whole() const { return is_whole_; }

 private:
  void add_events(ServerEvents events, std::uint32_t position);

  const ApiRequest& request_;
  std::unique_ptr<AnswerWriter> writer_;
  std::optional<EventIds> ids_;  // set for a stream that the client can resume
  ServerEvents unsent_;
  std::optional<Answer> answer_;  // sent in place of a stream
  std::optional<Error> refused_;  // what `answer_` says, if the schema may be the cause
  bool has_events_ = false;       // events or a comment were sent
  std::chrono::steady_clock::time_point written_at_ = std::chrono::steady_clock::now();
  bool is_answered_ = false;
  bool is_whole_ = false;
};

/// For a returning client, the text is generated or replayed from its beginning, but the events
/// that the client already has are not sent.
void AnswerOutput::add_events(ServerEvents events, std::uint32_t position) {
  if (ids_) ids_->number(position, events);
  std::ranges::move(events, std::back_inserter(unsent_));
}

void AnswerOutput::end(std::uint32_t position, UsageCount usage) {
  is_answered_ = is_whole_ = true;
  if (request_.stream) return add_events(writer_->end(usage), position);
  answer_ = Answer{.body = writer_->whole(usage)};
}

void AnswerOutput::fail_with(const Error& error) {
  is_answered_ = true;
  if (!has_events_ && unsent_.empty()) {
    answer_ = error_answer({error, param_of(error, request_.api)});
    if (error.code == Errc::BadRequest && !request_.schema_path.empty()) refused_ = error;
    return;
  }
  std::ranges::move(writer_->failed(error), std::back_inserter(unsent_));
}

awaitable<void> AnswerOutput::flush(HttpStream& stream) {
  if (answer_) co_return co_await stream.send(*std::move(answer_));
  if (!is_answered_ && unsent_.empty()) co_return;
  has_events_ = true;
  written_at_ = std::chrono::steady_clock::now();
  const auto follows = is_answered_ ? HttpStream::Follows::Nothing : HttpStream::Follows::More;
  // GCC 12 destroys braced temporaries of a co_await expression twice.
  ServerEvents events = std::exchange(unsent_, {});
  co_await stream.write_events(std::move(events), follows);
}

awaitable<void> AnswerOutput::beat(HttpStream& stream) {
  has_events_ = true;
  written_at_ = std::chrono::steady_clock::now();
  ServerEvents events = writer_->beat();
  co_await stream.write_events(std::move(events), HttpStream::Follows::More);
}

class AnswerDriver {
 public:
  AnswerDriver(Shared& shared, Caller caller, ApiRequest request, HttpStream& stream)
      : shared_(shared),
        stream_(stream),
        caller_(std::move(caller)),
        request_(std::move(request)),
        progress_(choices_of(request_), request_.n),
        output_(request_) {}
  AnswerDriver(const AnswerDriver&) = delete;
  AnswerDriver& operator=(const AnswerDriver&) = delete;

  awaitable<void> run();

 private:
  awaitable<void> await_events();
  std::optional<Duration> time_to_heartbeat() const;
  void take_waiting();
  void take(Generations::Event event);
  void fail_with(const Error& error);
  awaitable<void> name_schema(Error refused);
  std::function<void()> keep_lease() const;
  void stop_generating();
  RunningAnswer as_running();
  void end_if_stopped();
  Error unknown_event(std::uint32_t last) const;
  std::optional<Error> error_of(const client::Ended& ended) const;
  client::SessionConfig config_of(wire::RequestSubmit submit) const;
  bool goes_on() const { return !output_.is_answered() && !stream_.is_gone() && !shared_.closing; }

  Shared& shared_;
  HttpStream& stream_;
  Caller caller_;
  ApiRequest request_;
  std::shared_ptr<Generations> generations_;
  std::vector<ChoiceText> texts_;
  ChoiceProgress progress_;
  AnswerOutput output_;
  std::vector<RequestId> request_ids_;  // of the choices, in the worker
  std::optional<Error> stopped_by_;     // set by RunningAnswers::end
  bool ends_at_once_ = false;           // does not wait for the worker's end of its choices
};

client::SessionConfig AnswerDriver::config_of(wire::RequestSubmit submit) const {
  client::SessionConfig config;
  config.broker_path = shared_.deps.broker_socket;
  config.tenant = caller_.tenant;
  config.worker = shared_.deps.worker;
  config.api_key = caller_.key;
  config.rebind = true;
  config.retry.rebind_timeout = Duration::max();  // the client ends the wait by leaving
  config.scavenger = caller_.is_batch;
  config.lease = shared_.leases->share(caller_.lease_owner(), submit.request_id);
  submit.x_request_id = stream_.labels().x_request_id;
  if (stream_.labels().trace) submit.traceparent = stream_.labels().trace->text();
  config.request = std::move(submit);
  return config;
}

Error AnswerDriver::unknown_event(std::uint32_t last) const {
  return {Errc::BadRequest,
          fmt::format("Last-Event-ID is {}, and the last event of request {} has "
                      "{}; send the request without it",
                      *caller_.last_event_id, request_.submit.request_id.value, last)};
}

awaitable<void> AnswerDriver::run() {
  if (request_.stream && request_.submit.resumable) {
    auto ids = EventIds::after(caller_.last_event_id, how_computed(shared_.deps.model));
    if (!ids) co_return co_await stream_.send(refusal(ids.error()));
    output_.set_ids(*std::move(ids));
  }
  std::vector<client::SessionConfig> configs;
  for (std::uint32_t i = 0; i < choices_of(request_); ++i) {
    configs.push_back(config_of(submission_of(request_, i)));
    request_ids_.push_back(wire::id_in_worker(caller_.tenant, configs.back().request.request_id));
    texts_.emplace_back(i, request_, configs.back().request, *shared_.deps.tokenizer);
  }
  generations_ =
      Generations::start(*shared_.deps.io, shared_.timers, std::move(configs), keep_lease());
  stream_.watch([generations = generations_] { generations->wake(); });
  const RunningAnswers::Registration registration(shared_.running_answers, as_running());
  while (goes_on()) {
    co_await await_events();
    if (generations_->take_wake()) co_await stream_.probe();
    take_waiting();
    end_if_stopped();
    if (auto refused = output_.take_refused()) co_await name_schema(*std::move(refused));
    co_await output_.flush(stream_);
    // A client that left before the end was written may come back for the end.
    if (output_.is_whole() && request_.submit.resumable && !stream_.is_gone())
      shared_.leases->finished(caller_.tenant, request_.submit.request_id);
    if (goes_on() && time_to_heartbeat() == Duration::zero()) co_await output_.beat(stream_);
  }
  stop_generating();
}

RunningAnswer AnswerDriver::as_running() {
  return {.id = answer_id(request_),
          .tenant = caller_.tenant,
          .key = caller_.key_id,
          .client_id = stream_.labels().x_request_id,
          .began_at = shared_.deps.clock->now(),
          .choices = [this] { return progress_.running(request_ids_); },
          .end =
              [this](const Error& why, bool at_once) {
                stopped_by_ = why;
                ends_at_once_ = at_once;
                generations_->wake();
              }};
}

/// The worker ends the choices that it has. A choice without a lease would be submitted again, and
/// one that was moved would run on.
void AnswerDriver::end_if_stopped() {
  const bool ends = stopped_by_ && (ends_at_once_ || progress_.any_lacks_lease());
  if (ends && goes_on()) output_.fail_with(*stopped_by_);
}

/// Waits for events. If some are queued already, it only lets other connections run.
awaitable<void> AnswerDriver::await_events() {
  if (generations_->has_waiting()) {
    co_await boost::asio::post(*shared_.deps.io, boost::asio::use_awaitable);
    co_return;
  }
  std::optional<CountedIn> waiting;
  if (progress_.all_await_lease()) waiting.emplace(shared_.counts.awaiting_lease);
  co_await generations_->changed(time_to_heartbeat());
}

/// How long until the stream sends a heartbeat; nothing if it sends none. A stream may be silent
/// while a prompt is read, a lease is replaced, or the tokens do not make a whole event. Before a
/// worker has accepted a choice, no heartbeat is sent, because the status may still be a refusal.
std::optional<Duration> AnswerDriver::time_to_heartbeat() const {
  const bool is_begun = output_.is_begun() || progress_.any_runs();
  if (!request_.stream || !is_begun || shared_.deps.heartbeat == Duration::zero())
    return std::nullopt;
  return std::max(Duration::zero(), shared_.deps.heartbeat - output_.silent());
}

void AnswerDriver::take_waiting() {
  for (int taken = 0; taken < kMaxEventsPerWrite && goes_on(); ++taken) {
    auto event = generations_->next();
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
  if (generations_->was_unread()) return;  // generation has stopped already
  const bool goes_on = request_.submit.resumable && !output_.is_answered() && !shared_.closing;
  goes_on ? generations_->leave() : generations_->cancel();
}

std::optional<Error> AnswerDriver::error_of(const client::Ended& ended) const {
  if (generations_->was_unread())
    return Error{Errc::QueueFull,
                 output_.ids() ? "too much of the stream was unread; send the request again with "
                                 "the last id as Last-Event-ID"
                               : "too much of the stream was unread; read faster"};
  if (ended.error) return ended.error;
  if (ended.reason != "Cancelled") return std::nullopt;
  return shared_.deps.stopping;
}

/// Logs errors that are not the client's where an operator sees them by default.
void AnswerDriver::fail_with(const Error& error) {
  const auto level = status_of(error) >= 500 ? spdlog::level::info : spdlog::level::debug;
  spdlog::log(level, "HTTP request failed tenant={} request={} code={} reason=\"{}\"{}",
              caller_.tenant.value, request_.submit.request_id.value, name(error.code),
              error.detail, stream_.labels().log_text());
  output_.fail_with(error);
}

void AnswerDriver::take(Generations::Event event) {
  if (const auto held_back = progress_.note(event)) return fail_with(*held_back);
  ChoiceText& text = texts_[event.index];
  if (auto* prompt = std::get_if<client::PromptLogprobsArrived>(&event.event))
    return text.add(std::move(prompt->logprobs));
  if (const auto* token = std::get_if<client::TokenArrived>(&event.event))
    return output_.add(text.add(token->token), token->token.position, progress_.usage());
  const auto* ended = std::get_if<client::Ended>(&event.event);
  if (ended == nullptr) return;
  const std::uint32_t end = ended->delivered_tokens;
  if (const auto error = error_of(*ended)) return fail_with(*error);
  if (output_.ids() && output_.ids()->is_beyond(end)) return fail_with(unknown_event(end));
  output_.add(text.end(ended->text, ended->reason), end, progress_.usage());
  if (progress_.all_ended()) output_.end(end, progress_.usage());
}

/// The worker compiles a schema, and its refusal does not say which field is the cause. The schema
/// is compiled again, away from the thread that sends all streams.
awaitable<void> AnswerDriver::name_schema(Error refused) {
  AsyncValue<bool> checked(*shared_.deps.io);
  shared_.run_on_pool(caller_.tenant, [format = request_.submit.sampling.response_format,
                                       give = checked.giver()] { give(is_refused(format)); });
  const auto is_schema = co_await checked.take();
  if (is_schema.value_or(false)) output_.name_schema(std::move(refused));
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

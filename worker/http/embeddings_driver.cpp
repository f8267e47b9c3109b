#include "worker/http/embeddings_driver.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "common/machine/confined.hpp"
#include "ipc/http/async_value.hpp"
#include "worker/http/choice_progress.hpp"
#include "worker/http/generations.hpp"
#include "worker/http/on_pool.hpp"
#include "worker/http/session_config.hpp"

namespace leasehold::http {
namespace {

using boost::asio::awaitable;

/// The most events that the driver handles before it lets other connections run.
constexpr int kMaxEventsPerTurn = 64;

class EmbeddingsDriver {
 public:
  EmbeddingsDriver(Shared& shared, Caller caller, EmbeddingsRequest request, HttpStream& stream)
      : shared_(shared),
        stream_(stream),
        caller_(std::move(caller)),
        request_(std::move(request)),
        generations_(Generations::start(*shared.deps.io, shared.timers, {})),
        vectors_(request_.inputs.size()),
        request_ids_(request_.inputs.size()),
        progress_(request_.inputs.size(), 1) {}
  EmbeddingsDriver(const EmbeddingsDriver&) = delete;
  EmbeddingsDriver& operator=(const EmbeddingsDriver&) = delete;

  awaitable<void> run();

 private:
  void start_more();
  awaitable<void> await_events();
  void take_waiting();
  void take(const Generations::Event& event);
  void fail_with(const Error& error, std::string param);
  awaitable<void> send_answer();
  RunningAnswer as_running();
  std::vector<RunningChoice> running_inputs() const;
  bool goes_on() const {
    return !failure_ && !progress_.all_ended() && !stream_.is_gone() && !shared_.closing;
  }

  Shared& shared_;
  HttpStream& stream_;
  Caller caller_;
  EmbeddingsRequest request_;
  std::shared_ptr<Generations> generations_;
  std::vector<std::string> vectors_;    // by input; empty: not computed yet
  std::vector<RequestId> request_ids_;  // by input, in the worker; empty: not started
  std::size_t started_ = 0;
  std::size_t ended_ = 0;
  ChoiceProgress progress_;
  std::optional<Answer> failure_;
  std::optional<Error> stopped_by_;  // set by RunningAnswers::end
  bool ends_at_once_ = false;        // does not wait for the worker's end of the inputs
};

awaitable<void> EmbeddingsDriver::run() {
  stream_.watch([generations = generations_] { generations->wake(); });
  const RunningAnswers::Registration registration(shared_.running_answers, as_running());
  start_more();
  while (goes_on()) {
    co_await await_events();
    if (generations_->take_wake()) co_await stream_.probe();
    take_waiting();
    const bool is_stopped = stopped_by_ && (ends_at_once_ || progress_.any_lacks_lease());
    if (is_stopped && goes_on()) fail_with(*stopped_by_, {});
    if (goes_on()) start_more();
  }
  if (!progress_.all_ended()) generations_->cancel();
  if (stream_.is_gone() || shared_.closing) co_return;
  if (!failure_) co_return co_await send_answer();
  Answer failure = *std::move(failure_);
  co_await stream_.send(std::move(failure));
}

void EmbeddingsDriver::start_more() {
  // A draining worker takes no further input, so an answer that needs one would wait in vain.
  if (shared_.draining && started_ < request_.inputs.size())
    return fail_with(shared_.deps.stopping, {});
  for (; started_ < request_.inputs.size() && started_ - ended_ < kMaxRunningInputs; ++started_) {
    client::SessionConfig config =
        session_config(shared_, caller_, stream_.labels(), submission_of(request_, started_));
    request_ids_[started_] = wire::id_in_worker(caller_.tenant, config.request.request_id);
    generations_->add(std::move(config));
  }
}

/// Waits for events. If some are queued already, it only lets other connections run.
awaitable<void> EmbeddingsDriver::await_events() {
  if (generations_->has_waiting()) {
    co_await boost::asio::post(*shared_.deps.io, boost::asio::use_awaitable);
    co_return;
  }
  std::optional<CountedIn> waiting;
  if (progress_.all_await_lease()) waiting.emplace(shared_.counts.awaiting_lease);
  co_await generations_->changed();
}

void EmbeddingsDriver::take_waiting() {
  for (int taken = 0; taken < kMaxEventsPerTurn && goes_on(); ++taken) {
    const auto event = generations_->next();
    if (!event) return;
    take(*event);
  }
}

void EmbeddingsDriver::take(const Generations::Event& event) {
  if (const auto held_back = progress_.note(event)) return fail_with(*held_back, {});
  const auto* retrying = std::get_if<client::Retrying>(&event.event);
  const bool is_refused = retrying != nullptr && retrying->error.code == Errc::Draining;
  if (is_refused && shared_.draining) return fail_with(shared_.deps.stopping, {});
  const auto* ended = std::get_if<client::Ended>(&event.event);
  if (ended == nullptr) return;
  ++ended_;
  if (ended->error) return fail_with(*ended->error, param_of(request_, event.index, *ended->error));
  if (ended->reason == "Cancelled") return fail_with(shared_.deps.stopping, {});
  vectors_[event.index] = ended->embedding;
}

/// Logs errors that are not the client's where an operator sees them by default.
void EmbeddingsDriver::fail_with(const Error& error, std::string param) {
  const auto level = status_of(error) >= 500 ? spdlog::level::info : spdlog::level::debug;
  spdlog::log(level, "HTTP request failed tenant={} request={} code={} reason=\"{}\"{}",
              caller_.tenant.value, request_.submit.request_id.value, name(error.code),
              error.detail, stream_.labels().log_text());
  shared_.note_failure(caller_.tenant, error);
  failure_ = error_answer({error, std::move(param)});
}

/// Writes the body on another thread: it may have millions of numbers.
awaitable<void> EmbeddingsDriver::send_answer() {
  AsyncValue<Result<std::string>> written(*shared_.deps.io);
  shared_.run_on_pool(caller_.tenant, [request = std::move(request_), vectors = std::move(vectors_),
                                       usage = progress_.usage(), give = written.giver()] {
    give(catch_request_errors([&] { return embeddings_answer(request, vectors, usage); }));
  });
  auto body = co_await written.take();
  if (!body) co_return;  // the server is stopping
  Answer answer;
  if (*body) {
    answer.body = **std::move(body);
  } else {
    answer = refusal(body->error());
  }
  co_await stream_.send(std::move(answer));
}

RunningAnswer EmbeddingsDriver::as_running() {
  return {.id = answer_id(request_),
          .tenant = caller_.tenant,
          .key = caller_.key_id,
          .x_request_id = stream_.labels().x_request_id,
          .embeds = true,
          .began_at = shared_.deps.clock->now(),
          .choices = [this] { return running_inputs(); },
          .end =
              [this](const Error& why, bool at_once) {
                stopped_by_ = why;
                ends_at_once_ = at_once;
                generations_->wake();
              }};
}

std::vector<RunningChoice> EmbeddingsDriver::running_inputs() const {
  std::vector<RunningChoice> running = progress_.running(request_ids_);
  std::erase_if(running, [](const RunningChoice& input) {
    return input.engine_request_id.value.empty();  // not started
  });
  return running;
}

awaitable<void> drive(Shared& shared, const Caller& caller, EmbeddingsRequest request,
                      HttpStream& stream) {
  EmbeddingsDriver driver(shared, caller, std::move(request), stream);
  co_await driver.run();
}

}  // namespace

awaitable<void> answer_request(Shared& shared, const Caller& caller, EmbeddingsRequest request,
                               HttpStream& stream) {
  return drive(shared, caller, std::move(request), stream);
}

}  // namespace leasehold::http

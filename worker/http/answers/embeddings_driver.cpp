#include "worker/http/answers/embeddings_driver.hpp"

#include <utility>

#include "common/machine/confined.hpp"
#include "worker/http/answers/answer_run.hpp"
#include "worker/http/on_pool.hpp"
#include "worker/http/session_config.hpp"

namespace leasehold::http {
namespace {

using boost::asio::awaitable;

class EmbeddingsDriver {
 public:
  EmbeddingsDriver(Shared& shared, Caller caller, EmbeddingsRequest request, HttpStream& stream)
      : shared_(shared),
        stream_(stream),
        caller_(std::move(caller)),
        request_(std::move(request)),
        run_(shared, stream, caller_, ChoiceProgress(request_.inputs.size(), 1)),
        vectors_(request_.inputs.size()),
        request_ids_(request_.inputs.size()) {}
  EmbeddingsDriver(const EmbeddingsDriver&) = delete;
  EmbeddingsDriver& operator=(const EmbeddingsDriver&) = delete;

  awaitable<void> run();

 private:
  void start_more();
  void take_waiting();
  void take(const Generations::Event& event);
  void fail_with(const Error& error, std::string param);
  awaitable<void> send_answer();
  std::vector<RunningChoice> running_inputs() const;
  bool goes_on() const {
    return !failure_ && !run_.progress().all_ended() && !stream_.is_gone() && !shared_.closing;
  }

  Shared& shared_;
  HttpStream& stream_;
  Caller caller_;
  EmbeddingsRequest request_;
  AnswerRun run_;
  std::vector<std::string> vectors_;    // by input; empty: not computed yet
  std::vector<RequestId> request_ids_;  // by input, in the worker; empty: not started
  std::size_t started_ = 0;
  std::size_t ended_ = 0;
  std::optional<Answer> failure_;
};

awaitable<void> EmbeddingsDriver::run() {
  run_.start({});
  RunningAnswer running = run_.as_running(answer_id(request_));
  running.embeds = true;
  running.choices = [this] { return running_inputs(); };
  const RunningAnswers::Registration registration(shared_.running_answers, std::move(running));
  start_more();
  while (goes_on()) {
    co_await run_.await_events();
    take_waiting();
    const auto ended_by = run_.must_end();
    if (ended_by && goes_on()) fail_with(*ended_by, {});
    if (goes_on()) start_more();
  }
  if (!run_.progress().all_ended()) run_.generations().cancel();
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
    run_.generations().add(std::move(config));
  }
}

void EmbeddingsDriver::take_waiting() {
  for (int taken = 0; taken < AnswerRun::kMaxEventsPerTurn && goes_on(); ++taken) {
    const auto event = run_.generations().next();
    if (!event) return;
    take(*event);
  }
}

void EmbeddingsDriver::take(const Generations::Event& event) {
  if (const auto held_back = run_.progress().note(event)) return fail_with(*held_back, {});
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

void EmbeddingsDriver::fail_with(const Error& error, std::string param) {
  run_.note_failure(request_.submit.request_id, error);
  failure_ = error_answer({error, std::move(param)});
}

/// Writes the body on another thread: it may have millions of numbers.
awaitable<void> EmbeddingsDriver::send_answer() {
  std::move_only_function<Result<std::string>()> work = [request = std::move(request_),
                                                         vectors = std::move(vectors_),
                                                         usage = run_.progress().usage()] {
    return catch_request_errors([&] { return embeddings_answer(request, vectors, usage); });
  };
  auto body = co_await on_pool<Result<std::string>>(shared_, caller_.tenant, std::move(work));
  if (!body) co_return;  // the server is stopping
  Answer answer;
  if (*body) {
    answer.body = **std::move(body);
  } else {
    answer = refusal(body->error());
  }
  co_await stream_.send(std::move(answer));
}

std::vector<RunningChoice> EmbeddingsDriver::running_inputs() const {
  std::vector<RunningChoice> running = run_.progress().running(request_ids_);
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

/// What the drivers of texts and of embeddings share: the generations of one answer, their
/// progress, and an operator's order to end them.
///
/// Lifetime: `shared`, `stream` and `caller` outlive it. Threads: the one that runs the server's
/// io_context.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "worker/http/choice_progress.hpp"
#include "worker/http/generations.hpp"
#include "worker/http/http_stream.hpp"
#include "worker/http/keys/key_check.hpp"
#include "worker/http/running_answers.hpp"

namespace leasehold::http {

class AnswerRun {
 public:
  /// The most events that a driver handles before it lets other connections run.
  static constexpr int kMaxEventsPerTurn = 64;

  AnswerRun(Shared& shared, HttpStream& stream, const Caller& caller, ChoiceProgress progress);
  AnswerRun(const AnswerRun&) = delete;
  AnswerRun& operator=(const AnswerRun&) = delete;

  /// Starts the requests, and wakes the driver when the client may have left. `on_leave`: see
  /// Generations::start. Call it once, before the functions below.
  void start(std::vector<client::SessionConfig> configs, std::function<void()> on_leave = nullptr);
  Generations& generations() const { return *generations_; }
  ChoiceProgress& progress() { return progress_; }
  const ChoiceProgress& progress() const { return progress_; }

  /// Waits for events, or for this time. If some are queued already, it only lets other connections
  /// run. Looks whether the client has left.
  boost::asio::awaitable<void> await_events(std::optional<Duration> longest = std::nullopt);

  /// The error of an operator's order that the driver must carry out. The worker ends the choices
  /// that it has. A choice without a lease would be submitted again, and one that was moved would
  /// run on.
  std::optional<Error> must_end() const;

  /// Describes the answer with this id; the driver adds `choices`.
  RunningAnswer as_running(std::string id);

  /// Logs and counts the error of an answer. Errors that are not the client's are logged where an
  /// operator sees them by default.
  void note_failure(const RequestId& request, const Error& error) const;

 private:
  Shared& shared_;
  HttpStream& stream_;
  const Caller& caller_;
  std::shared_ptr<Generations> generations_;
  ChoiceProgress progress_;
  std::optional<Error> stopped_by_;  // set by RunningAnswers::end
  bool ends_at_once_ = false;        // does not wait for the worker's end of its choices
};

}  // namespace leasehold::http

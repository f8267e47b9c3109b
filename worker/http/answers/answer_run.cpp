#include "worker/http/answers/answer_run.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace leasehold::http {

using boost::asio::awaitable;

AnswerRun::AnswerRun(Shared& shared, HttpStream& stream, const Caller& caller,
                     ChoiceProgress progress)
    : shared_(shared), stream_(stream), caller_(caller), progress_(std::move(progress)) {}

void AnswerRun::start(std::vector<client::SessionConfig> configs, std::function<void()> on_leave) {
  generations_ =
      Generations::start(*shared_.deps.io, shared_.timers, std::move(configs), std::move(on_leave));
  stream_.watch([generations = generations_] { generations->wake(); });
}

awaitable<void> AnswerRun::await_events(std::optional<Duration> longest) {
  if (generations_->has_waiting()) {
    co_await boost::asio::post(*shared_.deps.io, boost::asio::use_awaitable);
  } else {
    std::optional<CountedIn> waiting;
    if (progress_.all_await_lease()) waiting.emplace(shared_.counts.awaiting_lease);
    co_await generations_->changed(longest);
  }
  if (generations_->take_wake()) co_await stream_.probe();
}

std::optional<Error> AnswerRun::must_end() const {
  const bool ends = stopped_by_ && (ends_at_once_ || progress_.any_lacks_lease());
  return ends ? stopped_by_ : std::nullopt;
}

RunningAnswer AnswerRun::as_running(std::string id) {
  return {.id = std::move(id),
          .tenant = caller_.tenant,
          .key = caller_.key_id,
          .x_request_id = stream_.labels().x_request_id,
          .began_at = shared_.deps.clock->now(),
          .choices = nullptr,
          .end = [this](const Error& why, bool at_once) {
            stopped_by_ = why;
            ends_at_once_ = at_once;
            generations_->wake();
          }};
}

void AnswerRun::note_failure(const RequestId& request, const Error& error) const {
  const auto level = status_of(error) >= 500 ? spdlog::level::info : spdlog::level::debug;
  spdlog::log(level, "HTTP request failed tenant={} request={} code={} reason=\"{}\"{}",
              caller_.tenant.value, request.value, name(error.code), error.detail,
              stream_.labels().log_text());
  shared_.note_failure(caller_.tenant, error);
}

}  // namespace leasehold::http

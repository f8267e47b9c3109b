#include "worker/worker_stop.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "common/service_manager.hpp"

namespace leasehold {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);
/// From the end of the drain timeout to the exit: the last answers and the kept ids are written.
constexpr auto kStopMargin = std::chrono::seconds(15);

}  // namespace

void WorkerStop::drain(std::chrono::milliseconds timeout) {
  if (is_draining() || timeout.count() == 0) return deps_.loop->stop();
  deadline_ = Clock::now() + timeout;
  spdlog::info("draining timeout_ms={}", timeout.count());
  const auto extended = std::chrono::microseconds(timeout + kStopMargin);
  notify_service_manager(
      fmt::format("STOPPING=1\nEXTEND_TIMEOUT_USEC={}\nSTATUS=Draining", extended.count()));
  notify_broker();
  if (deps_.http != nullptr) deps_.http->drain();
  // Only a count that the engine takes afterwards has every request that was admitted.
  deps_.serving->server().drain([this] { boost::asio::post(*deps_.io, [this] { when_idle(); }); });
}

/// The broker prefers the worker with the fewest leases, which a draining one soon is.
void WorkerStop::notify_broker() {
  if (!is_draining()) return;
  const wire::WorkerDraining draining;
  deps_.broker->notify(std::string(draining.kMethod), {.body = draining.to_json()});
}

void WorkerStop::when_idle() {
  if (!std::exchange(is_polling_, true)) poll();
}

void WorkerStop::poll() {
  deps_.loop->post([this](Engine& engine) {
    const Scheduler& scheduler = engine.scheduler();
    const std::size_t requests = scheduler.running_count() + scheduler.waiting_count();
    boost::asio::post(*deps_.io, [this, requests] { check(requests); });
  });
}

void WorkerStop::check(std::size_t requests) {
  const bool is_answering = is_draining() && deps_.http != nullptr && deps_.http->is_answering();
  if (requests == 0 && !is_answering) return stop_when_reported();
  if (deadline_ && Clock::now() >= *deadline_) {
    spdlog::warn("the drain timeout ends requests requests={}", requests);
    return deps_.loop->stop();
  }
  report(requests);
  timer_.expires_after(kPollInterval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) poll();
  });
}

/// Without a drain the broker is lost, and nothing confirms records.
void WorkerStop::stop_when_reported() {
  if (!is_draining()) return deps_.loop->stop();
  timer_.expires_at(*deadline_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    spdlog::warn("the drain timeout ends while usage records wait for the broker");
    deps_.loop->stop();
  });
  deps_.broker->when_usage_reported([this] {
    timer_.cancel();
    deps_.loop->stop();
  });
}

void WorkerStop::report(std::size_t requests) {
  if (!deadline_ || reported_ == requests) return;
  reported_ = requests;
  const auto left = std::chrono::ceil<std::chrono::seconds>(*deadline_ - Clock::now());
  notify_service_manager(
      fmt::format("STATUS=Draining {} requests, for at most {} s", requests, left.count()));
}

}  // namespace leasehold

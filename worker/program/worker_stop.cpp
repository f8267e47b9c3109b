#include "worker/program/worker_stop.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "common/machine/service_manager.hpp"

namespace leasehold {
namespace {

/// Time between the end of the drain timeout and the exit, in which the last answers and the kept
/// ids are written.
constexpr auto kStopMargin = std::chrono::seconds(15);

}  // namespace

void WorkerStop::drain(std::chrono::milliseconds timeout) {
  if (is_draining() || timeout.count() == 0) return deps_.stop_loop();
  deadline_ = deps_.now() + timeout;
  spdlog::info("draining timeout_ms={}", timeout.count());
  const auto extended = std::chrono::microseconds(timeout + kStopMargin);
  notify_service_manager(
      fmt::format("STOPPING=1\nEXTEND_TIMEOUT_USEC={}\nSTATUS=Draining", extended.count()));
  notify_broker();
  // Only counts that the engine takes after this callback include every admitted request.
  deps_.refuse_requests([this] {
    boost::asio::post(*deps_.io, [this] {
      are_all_in_loop_ = true;
      stop_when_idle();
    });
  });
}

/// Keeps the broker from choosing this worker: it prefers the worker with the fewest leases, and a
/// draining worker soon has the fewest.
void WorkerStop::notify_broker() {
  if (is_draining()) deps_.notify_broker();
}

void WorkerStop::stop_when_idle() {
  if (!std::exchange(is_polling_, true)) poll();
}

void WorkerStop::poll() {
  deps_.count_requests([this, has_all = are_all_in_loop_](std::size_t requests) {
    boost::asio::post(*deps_.io,
                      [this, requests, has_all] { check(requests, has_all || !is_draining()); });
  });
}

void WorkerStop::check(std::size_t requests, bool has_all) {
  if (requests > 0) awaits_broker_since_.reset();
  if (requests == 0 && has_all && !awaits_answers()) return stop_when_reported();
  if (deadline_ && deps_.now() >= *deadline_) {
    spdlog::warn("the drain timeout ends requests requests={}", requests);
    return deps_.stop_loop();
  }
  report(requests);
  timer_.expires_after(deps_.poll_interval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) poll();
  });
}

/// True while the drain must wait for HTTP answers. Without a drain the broker is lost, and no
/// answer is awaited.
bool WorkerStop::awaits_answers() {
  if (!is_draining() || !deps_.is_answering()) return false;
  const bool awaits_broker = deps_.is_broker_disconnected() && !deps_.is_writing();
  if (!awaits_broker) {
    awaits_broker_since_.reset();
    return true;
  }
  const auto now = deps_.now();
  if (!awaits_broker_since_) awaits_broker_since_ = now;
  return now - *awaits_broker_since_ < kLeaseWait;
}

/// Waits for usage records, then stops the loop. Without a drain the broker is lost and cannot
/// confirm records.
void WorkerStop::stop_when_reported() {
  if (!is_draining()) return deps_.stop_loop();
  timer_.expires_at(*deadline_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    spdlog::warn("the drain timeout ends while usage records wait for the broker");
    deps_.stop_loop();
  });
  deps_.when_usage_reported([this] {
    timer_.cancel();
    deps_.stop_loop();
  });
}

void WorkerStop::report(std::size_t requests) {
  if (!deadline_ || reported_ == requests) return;
  reported_ = requests;
  const auto left = std::chrono::ceil<std::chrono::seconds>(*deadline_ - deps_.now());
  notify_service_manager(
      fmt::format("STATUS=Draining {} requests, for at most {} s", requests, left.count()));
}

}  // namespace leasehold

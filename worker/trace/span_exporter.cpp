#include "worker/trace/span_exporter.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iterator>
#include <limits>
#include <utility>

#include "common/unix_time.hpp"

namespace leasehold {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kPath = "/v1/traces";

}  // namespace

SpanExporter::SpanExporter(SpanExporterConfig config)
    : config_(std::move(config)), pause_(config_.first_pause) {
  if (config_.url.path.ends_with(kPath))
    config_.url.path.resize(config_.url.path.size() - kPath.size());
}

Result<void> SpanExporter::start() {
  return thread_.start("traces", serve(), [](const std::exception_ptr&) {
    spdlog::error("traces are not exported any more: the exporter failed");
  });
}

void SpanExporter::add(std::vector<Span> spans) {
  std::size_t before = 0;
  {
    const std::scoped_lock lock(mutex_);
    before = queue_.size();
    if (before + spans.size() > config_.max_queue) {
      dropped_ += spans.size();
      return;
    }
    std::ranges::move(spans, std::back_inserter(queue_));
  }
  const bool fills_batch = before < config_.max_batch && before + spans.size() >= config_.max_batch;
  if (before == 0 || fills_batch) asio::post(thread_.io(), [this] { timer_.cancel(); });
}

void SpanExporter::stop(std::chrono::milliseconds timeout) {
  const auto end = [this] {
    is_stopping_ = true;
    timer_.cancel();
  };
  if (!thread_.stop(end, timeout)) return;
  const std::scoped_lock lock(mutex_);
  dropped_ += queue_.size() + in_flight_;
  queue_.clear();
}

// ----------------------------------------------------------------------------------------- thread

std::size_t SpanExporter::queued() const {
  const std::scoped_lock lock(mutex_);
  return queue_.size();
}

std::vector<Span> SpanExporter::take_batch() {
  const std::scoped_lock lock(mutex_);
  const std::size_t size = std::min(queue_.size(), config_.max_batch);
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(size);
  std::vector<Span> batch(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  return batch;
}

/// When the worker stops, batches are sent at once, until one fails.
asio::awaitable<void> SpanExporter::serve() {
  while (true) {
    co_await wait_for_batch();
    std::vector<Span> batch = take_batch();
    if (batch.empty()) co_return;  // the worker stops
    const bool sent = co_await send(std::move(batch));
    if (!sent && is_stopping_) co_return;
    if (!sent) {
      const auto pause = std::exchange(pause_, std::min(2 * pause_, config_.max_pause));
      co_await wait(pause, std::numeric_limits<std::size_t>::max());
    }
  }
}

asio::awaitable<void> SpanExporter::wait_for_batch() {
  while (queued() == 0 && !is_stopping_) co_await wait(std::chrono::hours(1), 1);
  co_await wait(config_.batch_delay, config_.max_batch);
}

/// Waits this long, but not while the worker stops, nor once `enough` spans are queued.
asio::awaitable<void> SpanExporter::wait(std::chrono::milliseconds longest, std::size_t enough) {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (!is_stopping_ && queued() < enough && std::chrono::steady_clock::now() < end) {
    timer_.expires_at(end);
    (void)co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

asio::awaitable<bool> SpanExporter::send(std::vector<Span> batch) {
  http::OutgoingRequest request{.verb = boost::beast::http::verb::post,
                                .target = std::string(kPath),
                                .body = otlp_json(batch, config_.resource, unix_minus_boottime())};
  in_flight_ = batch.size();
  const Result<std::string> answer =
      co_await http::exchange(names_, config_.url, std::move(request), config_.exchange);
  in_flight_ = 0;
  note(answer);
  const std::uint64_t rejected =
      answer ? std::min<std::uint64_t>(rejected_spans(*answer), batch.size()) : batch.size();
  dropped_ += rejected;
  exported_ += batch.size() - rejected;
  co_return answer.has_value();
}

/// Logs the first of several failures and the success after them.
void SpanExporter::note(const Result<std::string>& sent) {
  const bool had_failed = std::exchange(has_failed_, !sent);
  if (sent) pause_ = config_.first_pause;
  if (sent && had_failed) spdlog::info("trace collector reached again dropped={}", dropped_.load());
  if (!sent && !had_failed)
    spdlog::warn(
        "trace collector not reached, spans are dropped; check --otlp-endpoint url={} "
        "reason=\"{}\"",
        config_.url.text(), sent.error().detail);
}

}  // namespace leasehold

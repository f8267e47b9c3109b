/// Sends spans to a collector on its own thread, in batches: POST URL/v1/traces, OTLP in JSON.
///
///   add ─► queue ── a batch is full, or its first span is old enough ──► POST ── failed ──► pause
///
/// Nothing waits for the collector. Spans that the full queue has no room for, and those of a batch
/// that was not accepted, are dropped and counted; while the collector fails, a batch is tried
/// after each pause, which doubles. TLS is left to a collector or proxy on this machine.
///
/// Threads: any thread calls `add`, which takes a short lock, and `counts`. One thread constructs,
/// stops and destroys the object.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <mutex>
#include <vector>

#include "ipc/http/http_exchange.hpp"
#include "ipc/http/sending_thread.hpp"
#include "worker/trace/otlp_json.hpp"

namespace leasehold {

struct SpanExporterConfig {
  http::Url url;
  TraceResource resource;
  http::ExchangeLimits exchange{};
  std::size_t max_queue = 4'096;  ///< Spans that may wait.
  std::size_t max_batch = 512;
  std::chrono::milliseconds batch_delay{1'000};  ///< Counted from the first span of a batch.
  std::chrono::milliseconds first_pause{1'000};
  std::chrono::milliseconds max_pause{30'000};
};

class SpanExporter {
 public:
  /// Call `start` once.
  explicit SpanExporter(SpanExporterConfig config);
  ~SpanExporter() { stop({}); }
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  /// Starts the thread that sends. Errors: SystemError.
  Result<void> start();
  /// Queues the spans, all or none of them.
  void add(std::vector<Span> spans);
  SpanCounts counts() const { return {.exported = exported_, .dropped = dropped_}; }

  /// Sends what is queued, for at most `timeout`, then ends the thread. The rest is dropped.
  void stop(std::chrono::milliseconds timeout);

 private:
  std::size_t queued() const;
  std::vector<Span> take_batch();
  boost::asio::awaitable<void> serve();
  boost::asio::awaitable<void> wait_for_batch();
  boost::asio::awaitable<void> wait(std::chrono::milliseconds longest, std::size_t enough);
  boost::asio::awaitable<bool> send(std::vector<Span> batch);
  void note(const Result<std::string>& sent);

  SpanExporterConfig config_;
  std::atomic<std::uint64_t> exported_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
  mutable std::mutex mutex_;
  std::deque<Span> queue_;  // guarded by the mutex

  // Used only on the thread.
  std::chrono::milliseconds pause_;
  std::size_t in_flight_ = 0;  ///< Spans of the batch that is being sent.
  bool has_failed_ = false;
  bool is_stopping_ = false;

  http::SendingThread thread_;
  http::NameLookup names_;
  boost::asio::steady_timer timer_{thread_.io()};
};

}  // namespace leasehold

/// Counters and histograms of requests, updated where the events happen.
///
/// No call waits (common/metrics/counters.hpp). Threads: `refused_poll` on any gate thread, the
/// getters on any thread, the rest on the thread of the tenants' sockets.
#pragma once

#include <array>

#include "common/errc.hpp"
#include "common/metrics/batch_lines.hpp"
#include "common/metrics/counters.hpp"
#include "worker/schedule/request.hpp"

namespace leasehold {

/// One submission, while its stream is open.
struct RequestTiming {
  TimePoint submitted_at;
  std::uint32_t prompt_tokens = 0;
  TimePoint last_token_at = {};
};

class RequestMetrics {
 public:
  static constexpr std::size_t kReasonCount =
      static_cast<std::size_t>(CompletionReason::RequestCancelled) + 1;

  /// Only position 0 counts the prompt and the time to the first token, so that a request that
  /// continues under another lease does not count them twice.
  void token(RequestTiming& timing, std::uint32_t position, TimePoint now) {
    generated_tokens_.add();
    if (position == 0) {
      prompt_tokens_.add(timing.prompt_tokens);
      first_token_.observe(now - timing.submitted_at);
    } else if (timing.last_token_at != TimePoint{}) {
      inter_token_.observe(now - timing.last_token_at);
    }
    timing.last_token_at = now;
  }
  void completed(const RequestTiming& timing, CompletionReason reason, TimePoint now) {
    completed_.at(static_cast<std::size_t>(reason)).add();
    latency_.observe(now - timing.submitted_at);
  }
  /// Counts the embedding and its prompt.
  void embedded(const RequestTiming& timing) {
    embeddings_.add();
    prompt_tokens_.add(timing.prompt_tokens);
  }
  /// The request did not run.
  void refused(Errc code) { refused_.at(static_cast<std::size_t>(code)).add(); }
  /// Counts the requests whose API key the broker did not accept.
  metrics::Counter& refused_keys() { return refused_keys_; }
  const metrics::Counter& refused_keys() const { return refused_keys_; }
  metrics::BatchLines& batch_lines() { return batch_lines_; }
  const metrics::BatchLines& batch_lines() const { return batch_lines_; }
  void preempted() { preemptions_.add(); }
  void rebound() { rebinds_.add(); }
  /// A poll refused a sequence this long after the broker stored the lease word. Zero is not
  /// counted, because no word caused that refusal (ForwardRevoked).
  void refused_poll(Duration since_word_stored) {
    if (since_word_stored > Duration::zero()) clock_refuse_.observe(since_word_stored);
  }
  /// The typed error of a revoked request was written this long after the broker stored the word.
  void error_written(Duration since_word_stored) { clock_error_.observe(since_word_stored); }

  std::uint64_t prompt_tokens() const { return prompt_tokens_.value(); }
  std::uint64_t embeddings() const { return embeddings_.value(); }
  std::uint64_t generated_tokens() const { return generated_tokens_.value(); }
  std::uint64_t preemptions() const { return preemptions_.value(); }
  std::uint64_t rebinds() const { return rebinds_.value(); }
  std::uint64_t completed(CompletionReason reason) const {
    return completed_.at(static_cast<std::size_t>(reason)).value();
  }
  std::uint64_t refused_count(Errc code) const {
    return refused_.at(static_cast<std::size_t>(code)).value();
  }
  metrics::HistogramCounts first_token() const { return first_token_.counts(); }
  metrics::HistogramCounts inter_token() const { return inter_token_.counts(); }
  metrics::HistogramCounts latency() const { return latency_.counts(); }
  metrics::HistogramCounts clock_refuse() const { return clock_refuse_.counts(); }
  metrics::HistogramCounts clock_error() const { return clock_error_.counts(); }

 private:
  metrics::Counter prompt_tokens_;
  metrics::Counter embeddings_;
  metrics::Counter generated_tokens_;
  metrics::Counter refused_keys_;
  metrics::BatchLines batch_lines_;
  metrics::Counter preemptions_;
  metrics::Counter rebinds_;
  std::array<metrics::Counter, kReasonCount> completed_;
  std::array<metrics::Counter, kErrcCount> refused_;
  metrics::Histogram first_token_{metrics::kLatencyBounds};
  metrics::Histogram inter_token_{metrics::kLatencyBounds};
  metrics::Histogram latency_{metrics::kLatencyBounds};
  metrics::Histogram clock_refuse_{metrics::kClockBounds};
  metrics::Histogram clock_error_{metrics::kClockBounds};
};

}  // namespace leasehold

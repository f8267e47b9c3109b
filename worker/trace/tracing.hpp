/// Begins spans and passes those of sampled traces on.
///
/// Threads: any.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "worker/trace/span.hpp"

namespace leasehold {

/// The identity of a span that has begun.
struct SpanStart {
  TraceContext context;        ///< The trace, and the new span's id.
  std::string parent_span_id;  ///< Empty: the span begins a trace.
};

class Tracing {
 public:
  using Export = std::function<void(std::vector<Span>)>;

  /// `share`, 0 to 1, of the traces that begin here are sampled. `model` names what the worker
  /// serves. `send` takes finished spans and must not wait; any thread calls it.
  Tracing(double share, std::string model, Export send)
      : share_(share), model_(std::move(model)), send_(std::move(send)) {}

  /// Begins a span of the caller's trace, whose sampled flag decides, or of a new trace. Returns
  /// nothing for a trace that is not sampled.
  std::optional<SpanStart> begin(const std::optional<TraceContext>& caller) const;
  void end(std::vector<Span> spans) const { send_(std::move(spans)); }

  const std::string& model() const { return model_; }

 private:
  double share_;
  std::string model_;
  Export send_;
};

}  // namespace leasehold

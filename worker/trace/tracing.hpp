/// Begins the spans of sampled traces, and passes finished ones to an exporter.
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

  /// Begins a child of the caller's span if the caller's sampled flag is set. Without a caller,
  /// begins a new trace for `share` of the calls. Otherwise returns nothing.
  std::optional<SpanStart> begin(const std::optional<TraceContext>& caller) const;
  void end(std::vector<Span> spans) const { send_(std::move(spans)); }

  const std::string& model() const { return model_; }

 private:
  double share_;
  std::string model_;
  Export send_;
};

}  // namespace leasehold

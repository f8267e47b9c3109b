/// The names of an HTTP exchange in logs, traces and its own answer.
///
/// X-Request-Id: the client's value if it is valid (wire::is_x_request_id) and occurs once,
/// otherwise a new one. The answer has it, too. It names the exchange; `request_id` in a body names
/// the text.
///
/// traceparent: an invalid or repeated header is ignored. The answer of a request whose spans are
/// recorded has the header `traceresponse` (W3C Trace Context, Level 2).
#pragma once

#include <optional>
#include <string>

#include "common/errc.hpp"
#include "ipc/http/http_framing.hpp"
#include "worker/trace/tracing.hpp"

namespace leasehold::http {

struct ExchangeLabels {
  std::string x_request_id;
  std::optional<TraceContext> trace;  ///< The client's; after `begin_span` the exchange's.
  std::optional<SpanStart> span;      ///< Set if the trace of the exchange is sampled.

  /// Reads the head; without one, the labels of a request whose head could not be read.
  static ExchangeLabels of(const std::optional<Head>& head);
  /// Begins the span of the exchange, and returns the line that names it in the answer's head.
  /// Without `tracing` it does nothing. A new trace that is not sampled gets no span, and its
  /// `trace` says so, because each submission would draw again.
  std::string begin_span(const Tracing* tracing);

  /// Lines of the answer's head.
  std::string fields() const { return "X-Request-Id: " + x_request_id + "\r\n"; }
  /// The end of a log line: " x_request_id=… trace_id=…".
  std::string log_text() const;
};

/// How a traced exchange ended.
struct ExchangeEnd {
  std::string_view method;
  std::string_view route;
  int status = 0;                      ///< 0: the client left before the answer began.
  std::optional<Errc> stream_error{};  ///< What ended a stream whose status was 200.
  TimePoint begin;
  TimePoint end;
};

/// The span of the exchange, by OpenTelemetry's conventions for HTTP servers. Precondition:
/// `labels.span`.
Span span_of(const ExchangeLabels& labels, const ExchangeEnd& end);

}  // namespace leasehold::http

#include "worker/http/exchange_labels.hpp"

#include "common/random.hpp"
#include "ipc/control/messages/tenant.hpp"

namespace leasehold::http {

ExchangeLabels ExchangeLabels::of(const std::optional<Head>& head) {
  ExchangeLabels labels;
  if (head) {
    const auto given = head->only("X-Request-Id");
    if (given && wire::is_x_request_id(*given)) labels.x_request_id = *given;
    if (const auto trace = head->only("traceparent")) labels.trace = TraceContext::parse(*trace);
  }
  if (labels.x_request_id.empty()) labels.x_request_id = mint_request_id();
  return labels;
}

std::string ExchangeLabels::begin_span(const Tracing* tracing) {
  if (tracing == nullptr) return {};
  span = tracing->begin(trace);
  if (!span && !trace) trace = TraceContext::start(false);
  if (!span) return {};
  trace = span->context;
  return "traceresponse: " + trace->text() + "\r\n";
}

std::string ExchangeLabels::log_text() const {
  std::string text = " x_request_id=" + x_request_id;
  if (trace) text += " trace_id=" + trace->trace_id;
  return text;
}

Span span_of(const ExchangeLabels& labels, const ExchangeEnd& end) {
  Span span{.context = labels.span->context,
            .parent_span_id = labels.span->parent_span_id,
            .name = std::string(end.method).append(" ").append(end.route),
            .kind = SpanKind::Server,
            .begin = end.begin,
            .end = end.end,
            .attributes = {{"http.request.method", std::string(end.method)},
                           {"http.route", std::string(end.route)},
                           {"http.request.header.x-request-id",
                            std::vector<std::string>{labels.x_request_id}}}};
  if (end.stream_error) {
    span.error = name(*end.stream_error);
    span.attributes.push_back({"error.type", span.error});
  }
  if (end.status == 0) return span;
  span.attributes.push_back({"http.response.status_code", std::int64_t{end.status}});
  constexpr int kServerErrors = 500;
  if (end.status >= kServerErrors) span.error = "status " + std::to_string(end.status);
  return span;
}

}  // namespace leasehold::http

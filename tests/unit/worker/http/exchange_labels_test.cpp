#include "worker/http/exchange_labels.hpp"

#include <catch2/catch.hpp>

namespace leasehold::http {
namespace {

const std::string kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

Head head_with(std::vector<std::pair<std::string, std::string>> fields) {
  return {.method = "POST", .target = "/", .fields = std::move(fields)};
}

}  // namespace

TEST_CASE("exchange labels: a valid X-Request-Id comes back, another one is replaced") {
  CHECK(ExchangeLabels::of(head_with({{"x-request-id", "a-1"}})).fields() ==
        "X-Request-Id: a-1\r\n");
  const std::string longest(128, 'x');
  CHECK(ExchangeLabels::of(head_with({{"X-Request-Id", longest}})).x_request_id == longest);
  for (const std::string& invalid :
       {std::string(), longest + "x", std::string("a b"), std::string("\xC3\xA9"),
        std::string("a\tb"), std::string("a\x7f")}) {
    INFO(invalid);
    const auto labels = ExchangeLabels::of(head_with({{"X-Request-Id", invalid}}));
    CHECK(labels.x_request_id.starts_with("req-"));
  }
  const auto twice = ExchangeLabels::of(head_with({{"X-Request-Id", "a"}, {"X-Request-Id", "b"}}));
  CHECK(twice.x_request_id.starts_with("req-"));
  CHECK(ExchangeLabels::of(std::nullopt).x_request_id.starts_with("req-"));
}

TEST_CASE("exchange labels: the trace of the client is kept, an invalid one counts as none") {
  auto labels = ExchangeLabels::of(head_with({{"X-Request-Id", "a"}, {"traceparent", kParent}}));
  REQUIRE(labels.trace);
  CHECK(labels.log_text() == " x_request_id=a trace_id=4bf92f3577b34da6a3ce929d0e0e4736");
  // Without an exporter the client's span stays the parent of what follows.
  CHECK(labels.begin_span(nullptr).empty());
  CHECK(labels.trace->text() == kParent);
  CHECK_FALSE(ExchangeLabels::of(head_with({{"traceparent", "00-x"}})).trace);
  CHECK_FALSE(
      ExchangeLabels::of(head_with({{"traceparent", kParent}, {"traceparent", kParent}})).trace);
}

TEST_CASE("exchange labels: the span of an exchange is a child of the client's") {
  const Tracing tracing(0.0, "tiny", [](auto) {});  // the client's flag decides
  auto labels = ExchangeLabels::of(head_with({{"X-Request-Id", "a"}, {"traceparent", kParent}}));
  const std::string line = labels.begin_span(&tracing);
  REQUIRE(labels.span);
  CHECK(line == "traceresponse: " + labels.trace->text() + "\r\n");
  const Span span = span_of(
      labels,
      {.method = "POST", .route = "/v1/completions", .status = 503, .begin = {5}, .end = {9}});
  CHECK(span.context.trace_id == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK(span.parent_span_id == "00f067aa0ba902b7");
  CHECK(span.context.span_id == labels.trace->span_id);
  CHECK(span.name == "POST /v1/completions");
  CHECK(span.error == "status 503");
  const Span broken = span_of(labels, {.method = "POST",
                                       .route = "/v1/completions",
                                       .status = 200,
                                       .stream_error = Errc::OutOfBlocks,
                                       .begin = {5},
                                       .end = {9}});
  CHECK(broken.error == "OutOfBlocks");

  auto other = ExchangeLabels::of(head_with({}));
  CHECK(other.begin_span(&tracing).empty());
  CHECK_FALSE(other.span);
  // The submissions of the exchange are not sampled either.
  REQUIRE(other.trace);
  CHECK_FALSE(Tracing(1.0, "tiny", [](auto) {}).begin(other.trace));
}

}  // namespace leasehold::http

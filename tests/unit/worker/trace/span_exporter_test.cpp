// The exporter against a collector on the loopback device.
#include "worker/trace/span_exporter.hpp"

#include <catch2/catch.hpp>

#include "tests/support/trace_collector.hpp"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using Mode = TraceCollector::Mode;

SpanExporterConfig config_of(const std::string& url) {
  return {.url = http::Url::parse(url).value(),
          .resource = {.service_name = "leasehold-worker", .instance = "w1"},
          .exchange = {.timeout = 60s},
          .batch_delay = 1ms,
          .first_pause = 1ms,
          .max_pause = 1ms};
}

std::vector<Span> spans(int count) {
  std::vector<Span> all;
  for (int i = 0; i < count; ++i)
    all.push_back({.context = TraceContext::start(true), .name = "s", .begin = {5}, .end = {9}});
  return all;
}

}  // namespace

TEST_CASE("span exporter: every span arrives once, also those queued at the stop") {
  TraceCollector collector;
  // The path that some configurations name already is not repeated.
  const std::string path = GENERATE("", "/v1/traces");
  SpanExporterConfig config = config_of(collector.url() + path);
  config.max_batch = 4;
  config.batch_delay = GENERATE(1ms, std::chrono::milliseconds(1h));
  SpanExporter exporter(config);
  exporter.start().value();
  for (int i = 0; i < 5; ++i) exporter.add(spans(3));
  exporter.stop(60s);
  REQUIRE(collector.spans().size() == 15);
  CHECK(collector.spans().front().resource.at("service.instance.id") == "w1");
  CHECK(collector.spans().front().end_unix_ns - collector.spans().front().begin_unix_ns == 4);
  CHECK(exporter.counts() == SpanCounts{.exported = 15});
}

TEST_CASE("span exporter: a full batch does not wait for its delay") {
  TraceCollector collector;
  SpanExporterConfig config = config_of(collector.url());
  config.max_batch = 2;
  config.batch_delay = 1h;
  SpanExporter exporter(config);
  exporter.start().value();
  exporter.add(spans(1));
  exporter.add(spans(1));
  CHECK(collector.wait([](const CollectedSpans& arrived) { return arrived.size() == 2; }));
}

TEST_CASE(
    "span exporter: what a collector does not accept is dropped and counted, then it goes on") {
  TraceCollector collector;
  collector.behave(Mode::Unavailable);
  SpanExporter exporter(config_of(collector.url()));
  exporter.start().value();
  exporter.add(spans(2));
  REQUIRE(collector.wait_for_requests(1));
  collector.behave(Mode::Accept);
  exporter.add(spans(3));
  CHECK(collector.wait([](const CollectedSpans& arrived) { return arrived.size() == 3; }));
  exporter.stop(60s);
  CHECK(exporter.counts() == SpanCounts{.exported = 3, .dropped = 2});
}

TEST_CASE("span exporter: spans that the collector rejects in its answer count as dropped") {
  TraceCollector collector;
  collector.behave(Mode::RejectOne);
  SpanExporter exporter(config_of(collector.url()));
  exporter.start().value();
  exporter.add(spans(3));
  exporter.stop(60s);
  CHECK(exporter.counts() == SpanCounts{.exported = 2, .dropped = 1});
}

TEST_CASE(
    "span exporter: while the collector does not answer, the queue is bounded and add returns") {
  TraceCollector collector;
  collector.behave(Mode::Silent);
  SpanExporterConfig config = config_of(collector.url());
  config.max_queue = 10;
  SpanExporter exporter(config);
  exporter.start().value();
  exporter.add(spans(1));
  REQUIRE(collector.wait_for_requests(1));
  for (int i = 0; i < 5; ++i) exporter.add(spans(4));  // two groups of four fit
  CHECK(exporter.counts() == SpanCounts{.dropped = 12});
  exporter.stop(0s);
  CHECK(exporter.counts() == SpanCounts{.dropped = 21});  // with the batch under way
}

TEST_CASE("span exporter: without a collector spans are dropped and the stop does not wait") {
  SpanExporter exporter(config_of("http://127.0.0.1:1"));
  exporter.start().value();
  exporter.add(spans(2));
  exporter.stop(60s);
  CHECK(exporter.counts() == SpanCounts{.dropped = 2});
}

}  // namespace leasehold::testing

// Traces and X-Request-Id with real processes and a collector.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/process/http/http_client.hpp"
#include "tests/support/trace_collector.hpp"

namespace leasehold::testing {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "traceparent: 00-" + kTrace + "-00f067aa0ba902b7-01\r\n";

/// The time that a span may seem to begin before its parent, because each span's distance between
/// boot time and wall time is read for itself.
constexpr std::int64_t kClockError_ns = 1'000'000;

std::string header_of(const HttpReply& reply, const std::string& name) {
  const auto at = reply.head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 4;
  return reply.head.substr(begin, reply.head.find('\r', begin) - begin);
}

CollectedSpans named(const CollectedSpans& all, const std::string& begin) {
  CollectedSpans some;
  std::ranges::copy_if(all, std::back_inserter(some),
                       [&](const CollectedSpan& span) { return span.name.starts_with(begin); });
  return some;
}

bool has_root(const CollectedSpans& spans) {
  return !named(spans, "POST ").empty();
}

void check_nested(const CollectedSpan& outer, const CollectedSpan& inner) {
  INFO(outer.name << " and " << inner.name);
  CHECK(inner.parent_span_id == outer.span_id);
  CHECK(inner.trace_id == outer.trace_id);
  CHECK(inner.begin_unix_ns >= outer.begin_unix_ns - kClockError_ns);
  CHECK(inner.end_unix_ns <= outer.end_unix_ns + kClockError_ns);
  CHECK(inner.begin_unix_ns <= inner.end_unix_ns);
}

}  // namespace

TEST_CASE("traces: a revoked request is one trace, down to its leases, in spans and the log") {
  TraceCollector collector;
  HttpSystem http({"--slow-motion-us", "100", "--otlp-endpoint", collector.url()});
  const std::string key = http.admit("ann");
  HttpClient client(http.path());
  client.write(post("/v1/completions", key, http.completion(key, 60, true),
                    kParent + "X-Request-Id: mine-7\r\n"));
  REQUIRE(client.read_until(has_events(5)));
  REQUIRE(http.system().brokerctl({"revoke", "--tenant", "ann"}) == 0);
  const HttpReply reply = client.reply();
  CHECK(reply.events().back() == "[DONE]");
  CHECK(header_of(reply, "X-Request-Id") == "mine-7");

  REQUIRE(collector.wait(has_root));
  const CollectedSpans spans = collector.spans();
  const CollectedSpan root = named(spans, "POST ").at(0);
  CHECK(root.name == "POST /v1/completions");
  CHECK(root.kind == 2);
  CHECK(root.trace_id == kTrace);
  CHECK(root.parent_span_id == "00f067aa0ba902b7");
  CHECK(root.attributes.at("http.response.status_code") == "200");
  CHECK(root.attributes.at("http.request.header.x-request-id") == "mine-7");
  CHECK(root.resource.at("service.name") == "leasehold-worker");
  CHECK(header_of(reply, "traceresponse") == "00-" + kTrace + "-" + root.span_id + "-01");

  const CollectedSpans submissions = named(spans, "text_completion ");
  REQUIRE(submissions.size() == 2);  // before the revocation, and after it
  for (const CollectedSpan& submission : submissions) {
    check_nested(root, submission);
    for (const CollectedSpan& span : spans)
      if (span.parent_span_id == submission.span_id) check_nested(submission, span);
  }
  for (const char* phase : {"admission", "queue", "prefill", "decode"})
    CHECK(named(spans, phase).size() == 2);
  const CollectedSpan& first = submissions[0];
  const CollectedSpan& second = submissions[1];
  CHECK(first.error == "Revoked");
  REQUIRE(first.events.size() == 1);
  CHECK(first.events[0].name == "lease.revoked");
  CHECK(first.events[0].attributes.at("leasehold.revoke_reason") == "operator");
  const std::string lease = first.events[0].attributes.at("leasehold.lease");
  REQUIRE(second.events.size() == 1);
  CHECK(second.events[0].name == "lease.rebound");
  CHECK(second.events[0].attributes.at("leasehold.old_lease") == lease);
  CHECK(second.events[0].attributes.at("leasehold.new_lease") ==
        second.attributes.at("leasehold.lease"));
  CHECK(second.attributes.at("gen_ai.response.finish_reasons") == "length");
  CHECK(std::stoi(first.attributes.at("gen_ai.usage.output_tokens")) +
            std::stoi(second.attributes.at("gen_ai.usage.output_tokens")) ==
        60);

  const std::string log = http.system().worker_log();
  CHECK(log.contains("lease=" + lease));
  CHECK(log.contains(" x_request_id=mine-7 trace_id=" + kTrace));
}

TEST_CASE("traces: the flag of the client is honoured, and every answer has an X-Request-Id") {
  TraceCollector collector;
  HttpSystem http({"--otlp-endpoint", collector.url(), "--otlp-sample", "0"});
  const std::string key = http.admit("ann");
  const Json body = http.completion(key, 2, false);
  const std::string unsampled = "traceparent: 00-" + kTrace + "-00f067aa0ba902b7-00\r\n";
  for (const std::string& more : {std::string(), unsampled, std::string("traceparent: x\r\n")}) {
    const HttpReply reply = http.send(post("/v1/completions", key, body, more));
    CHECK(reply.status == 200);
    CHECK(header_of(reply, "X-Request-Id").starts_with("req-"));
    CHECK(header_of(reply, "traceresponse").empty());
  }
  const std::string named_a = "X-Request-Id: a\r\n";
  CHECK(header_of(http.send(post("/v1/completions", "wrong", body, named_a)), "X-Request-Id") ==
        "a");
  CHECK(header_of(http.send(post("/nowhere", key, body, named_a)), "X-Request-Id") == "a");
  CHECK(header_of(http.send(post("/v1/completions", key, {}, named_a)), "X-Request-Id") == "a");
  CHECK(header_of(http.send("GET / HTTP/1.1\r\n\r\n"), "X-Request-Id").starts_with("req-"));

  // The last request is sampled, so that what came before it has been sent, too.
  CHECK(http.send(post("/v1/completions", key, body, kParent)).status == 200);
  REQUIRE(collector.wait(has_root));
  CHECK(named(collector.spans(), "POST ").size() == 1);
  CHECK(named(collector.spans(), "text_completion ").size() == 1);
}

TEST_CASE("traces: without its collector a worker answers as before") {
  HttpSystem http({"--otlp-endpoint", "http://127.0.0.1:1"});
  const std::string key = http.admit("ann");
  const Json body = http.completion(key, 4, false);
  for (int i = 0; i < 3; ++i) CHECK(http.send(post("/v1/completions", key, body)).status == 200);
}

}  // namespace leasehold::testing

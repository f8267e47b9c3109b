#include "worker/trace/otlp_json.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/trace/lease_events.hpp"

namespace leasehold {

using Json = nlohmann::json;

TEST_CASE("otlp json: a span has the form that collectors read") {
  Span span{.context = {"4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", true},
            .parent_span_id = "1111111111111111",
            .name = "chat tiny",
            .kind = SpanKind::Server,
            .begin = {1'000},
            .end = {3'000},
            .attributes = {{"text", std::string("a\xff")},
                           {"number", std::int64_t{1} << 60},
                           {"share", 0.5},
                           {"list", std::vector<std::string>{"x", "y"}}},
            .error = "Revoked"};
  span.events.push_back(lease_revoked_event({17, 4}, "operator", "tenant", {2'000}));
  const Json json = Json::parse(
      otlp_json({&span, 1}, {.service_name = "leasehold-worker", .instance = "w1"}, Duration(1)));

  const Json& resource = json["resourceSpans"].at(0);
  CHECK(resource["resource"]["attributes"].at(0) ==
        Json{{"key", "service.name"}, {"value", {{"stringValue", "leasehold-worker"}}}});
  const Json& written = resource["scopeSpans"].at(0)["spans"].at(0);
  CHECK(written["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK(written["spanId"] == "00f067aa0ba902b7");
  CHECK(written["parentSpanId"] == "1111111111111111");
  CHECK(written["kind"] == 2);
  CHECK(written["startTimeUnixNano"] == "1001");  // text, because it has 64 bits
  CHECK(written["endTimeUnixNano"] == "3001");
  CHECK(written["status"] == Json{{"code", 2}, {"message", "Revoked"}});
  CHECK(written["attributes"].at(1)["value"] == Json{{"intValue", "1152921504606846976"}});
  CHECK(written["attributes"].at(2)["value"] == Json{{"doubleValue", 0.5}});
  CHECK(written["attributes"].at(3)["value"]["arrayValue"]["values"].at(1) ==
        Json{{"stringValue", "y"}});
  const Json& event = written["events"].at(0);
  CHECK(event["name"] == "lease.revoked");
  CHECK(event["timeUnixNano"] == "2001");
  CHECK(event["attributes"].at(0) ==
        Json{{"key", "leasehold.lease"}, {"value", {{"stringValue", "17.4"}}}});
}

TEST_CASE("otlp json: a root span has no parent, and a span without an error no status") {
  const Span span{.context = TraceContext::start(true), .name = "x"};
  const Json json = Json::parse(otlp_json({&span, 1}, {}, {}));
  const Json& written = json["resourceSpans"].at(0)["scopeSpans"].at(0)["spans"].at(0);
  CHECK_FALSE(written.contains("parentSpanId"));
  CHECK_FALSE(written.contains("status"));
  CHECK_FALSE(written.contains("events"));
}

TEST_CASE("otlp json: a collector's answer says how many spans it rejected") {
  CHECK(rejected_spans(R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}})") == 3);
  CHECK(rejected_spans(R"({"partialSuccess":{"rejectedSpans":3}})") == 3);
  for (const char* none :
       {"", "{}", "[]", "{", R"({"partialSuccess":{}})", R"({"partialSuccess":null})",
        R"({"partialSuccess":{"rejectedSpans":"3x"}})",
        R"({"partialSuccess":{"rejectedSpans":-3}})"}) {
    INFO(none);
    CHECK(rejected_spans(none) == 0);
  }
}

}  // namespace leasehold

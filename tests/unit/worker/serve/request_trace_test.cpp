// The spans of one submission.
#include "worker/serve/request_trace.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/worker/serve/server_fixture.hpp"

namespace leasehold::testing {
namespace {

const SpanStart kStart{.context = {"4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", true},
                       .parent_span_id = "1111111111111111"};

RequestTrace begun() {
  return {kStart,
          {.is_chat = true,
           .model = "tiny",
           .tenant = {"ann"},
           .client_request_id = {"r"},
           .x_request_id = "a-1",
           .lease = {17, 4},
           .max_emitted_tokens = 8},
          TimePoint{10}};
}

std::string text_of(const SpanAttributes& attributes, std::string_view key) {
  for (const SpanAttribute& each : attributes) {
    if (each.key != key) continue;
    if (const auto* text = std::get_if<std::string>(&each.value)) return *text;
    if (const auto* number = std::get_if<std::int64_t>(&each.value)) return std::to_string(*number);
  }
  return "missing";
}

std::vector<std::string> names(const std::vector<Span>& spans) {
  std::vector<std::string> all;
  for (const Span& span : spans) all.push_back(span.name);
  return all;
}

}  // namespace

TEST_CASE("request trace: each phase ends where the next begins, and all are children") {
  RequestTrace trace = begun();
  trace.parsed(5, {20});
  trace.admitted({30});
  trace.first_token({40});
  trace.preempted({.cause = Errc::QuotaBlocks, .freed_blocks = 3}, {45});
  const auto spans = trace.completed(
      {.reason = CompletionReason::MaxTokensReached, .emitted_tokens = 8, .cached_tokens = 4}, 8,
      {50});
  REQUIRE(names(spans) ==
          std::vector<std::string>{"chat tiny", "admission", "queue", "prefill", "decode"});
  CHECK(spans[0].context == kStart.context);
  CHECK(spans[0].parent_span_id == "1111111111111111");
  CHECK(spans[0].begin == TimePoint{10});
  CHECK(spans[0].end == TimePoint{50});
  for (std::size_t i = 1; i < spans.size(); ++i) {
    CHECK(spans[i].context.trace_id == kStart.context.trace_id);
    CHECK(spans[i].parent_span_id == kStart.context.span_id);
    CHECK(spans[i].begin == TimePoint{static_cast<std::int64_t>(10 * i)});
    CHECK(spans[i].end == TimePoint{static_cast<std::int64_t>(10 * (i + 1))});
  }
  const SpanAttributes& attributes = spans[0].attributes;
  CHECK(text_of(attributes, "gen_ai.operation.name") == "chat");
  CHECK(text_of(attributes, "gen_ai.request.model") == "tiny");
  CHECK(text_of(attributes, "gen_ai.usage.input_tokens") == "5");
  CHECK(text_of(attributes, "gen_ai.usage.output_tokens") == "8");
  CHECK(text_of(attributes, "gen_ai.usage.cache_read.input_tokens") == "4");
  CHECK(text_of(attributes, "leasehold.lease") == "17.4");
  CHECK(text_of(attributes, "leasehold.x_request_id") == "a-1");
  CHECK(text_of(attributes, "error.type") == "missing");
  REQUIRE(spans[0].events.size() == 1);
  CHECK(text_of(spans[0].events[0].attributes, "leasehold.cause") == "QuotaBlocks");
}

TEST_CASE("request trace: a revocation is an event with its lease and reason, and an error") {
  RequestTrace trace = begun();
  trace.parsed(5, {20});
  trace.rebound({.old_lease = {16, 1}, .new_lease = {17, 4}, .emitted_tokens = 3}, {25});
  trace.admitted({30});
  const auto spans = trace.completed(
      {.reason = CompletionReason::Revoked,
       .emitted_tokens = 3,
       .revocation = RevocationInfo{.lease = {17, 4}, .reason = RevokeReason::Operator}},
      0, {50});
  CHECK(names(spans) == std::vector<std::string>{"chat tiny", "admission", "queue", "prefill"});
  CHECK(spans[0].error == "Revoked");
  CHECK(text_of(spans[0].attributes, "error.type") == "Revoked");
  REQUIRE(spans[0].events.size() == 2);
  CHECK(spans[0].events[0].name == "lease.rebound");
  CHECK(text_of(spans[0].events[0].attributes, "leasehold.old_lease") == "16.1");
  CHECK(spans[0].events[1].name == "lease.revoked");
  CHECK(spans[0].events[1].at == TimePoint{50});
  CHECK(text_of(spans[0].events[1].attributes, "leasehold.lease") == "17.4");
  CHECK(text_of(spans[0].events[1].attributes, "leasehold.revoke_reason") == "operator");
}

TEST_CASE("request trace: preemptions without end leave room for the end of the lease") {
  RequestTrace trace = begun();
  for (int i = 0; i < 1'000; ++i) trace.preempted({.cause = Errc::QuotaBlocks}, {20 + i});
  const auto spans = trace.completed(
      {.reason = CompletionReason::Revoked, .revocation = RevocationInfo{.lease = {17, 4}}}, 0,
      {5'000});
  CHECK(spans[0].events.size() == 129);
  CHECK(spans[0].events.back().name == "lease.revoked");
}

TEST_CASE("request trace: a request that is refused has the phases that it reached") {
  CHECK(names(begun().refused(Errc::QueueFull, {15})) ==
        std::vector<std::string>{"chat tiny", "admission"});
  RequestTrace trace = begun();
  trace.parsed(5, {20});
  const auto spans = trace.refused(Errc::QuotaBlocks, {60});
  CHECK(names(spans) == std::vector<std::string>{"chat tiny", "admission", "queue"});
  CHECK(spans[0].error == "QuotaBlocks");
}

TEST_CASE("request trace: a request that is stopped while it is parsed has its spans, once") {
  std::vector<Span> sent;
  const Tracing tracing(1.0, "tiny", [&](std::vector<Span> spans) {
    std::ranges::move(spans, std::back_inserter(sent));
  });
  ServerFixture fixture(&tracing);
  const auto ann = fixture.tenant();
  fixture.generate(*ann, "r");
  fixture.wait_until_seen(*ann);
  const RequestId ids[] = {{"ann/r"}};
  fixture.server->operations().stop(ids, {Errc::RequestCancelled, "an operator cancelled it"});
  CHECK(fixture.parse() == 1);
  CHECK(names(sent) == std::vector<std::string>{"text_completion tiny", "admission"});
  REQUIRE_FALSE(sent.empty());
  CHECK(sent[0].error == "RequestCancelled");
}

TEST_CASE("request trace: a server sends the spans of sampled traces, and none of others") {
  std::vector<Span> sent;
  const Tracing tracing(0.0, "tiny", [&](std::vector<Span> spans) {
    std::ranges::move(spans, std::back_inserter(sent));
  });
  ServerFixture fixture(&tracing);
  fixture.start_engine();
  const auto ann = fixture.tenant();
  const bool is_sampled = GENERATE(true, false);
  wire::RequestSubmit request{.token = fixture.token_of("ann"), .request_id = {"r"}};
  request.prompt = "Once";
  request.max_emitted_tokens = 4;
  request.ignore_eos = true;
  request.traceparent = TraceContext{.trace_id = kStart.context.trace_id,
                                     .span_id = "1111111111111111",
                                     .is_sampled = is_sampled}
                            .text();
  fixture.call(*ann, "r", std::string(wire::RequestSubmit::kMethod), request.to_json());
  fixture.wait_until_seen(*ann);
  CHECK(fixture.parse() == 1);
  run_until(fixture.io, [&] { return ann->has_ended(); });
  CHECK(sent.empty() != is_sampled);
  if (!is_sampled) return;
  REQUIRE(names(sent) == std::vector<std::string>{"text_completion tiny", "admission", "queue",
                                                  "prefill", "decode"});
  CHECK(sent[0].context.trace_id == kStart.context.trace_id);
  CHECK(sent[0].parent_span_id == "1111111111111111");
  CHECK(text_of(sent[0].attributes, "gen_ai.usage.output_tokens") == "4");
  CHECK(text_of(sent[0].attributes, "gen_ai.usage.cache_read.input_tokens") == "0");
}

TEST_CASE(
    "request trace: a malformed traceparent or X-Request-Id is refused with what is expected") {
  ServerFixture fixture;
  const auto ann = fixture.tenant();
  for (const char* field : {"traceparent", "x_request_id"}) {
    wire::RequestSubmit request{.token = fixture.token_of("ann"), .request_id = {field}};
    request.prompt = "Once";
    wire::Json body = request.to_json();
    body[field] = "not valid";
    fixture.call(*ann, field, std::string(wire::RequestSubmit::kMethod), body);
    run_until(fixture.io, [&] { return ann->answers.contains(field); });
    CHECK(ann->answers.at(field).error().code == Errc::BadRequest);
    CHECK_THAT(ann->answers.at(field).error().detail, Catch::Contains(field));
  }
}

}  // namespace leasehold::testing

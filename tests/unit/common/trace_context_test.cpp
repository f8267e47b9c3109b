#include "common/trace_context.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kSpan = "00f067aa0ba902b7";

}  // namespace

TEST_CASE("trace context: a traceparent is read and written") {
  const auto read = TraceContext::parse("00-" + kTrace + "-" + kSpan + "-01");
  REQUIRE(read);
  CHECK(*read == TraceContext{.trace_id = kTrace, .span_id = kSpan, .is_sampled = true});
  CHECK(read->text() == "00-" + kTrace + "-" + kSpan + "-01");
  // Of the flags only "sampled" is known.
  CHECK_FALSE(TraceContext::parse("00-" + kTrace + "-" + kSpan + "-fe")->is_sampled);
  CHECK(TraceContext::parse("00-" + kTrace + "-" + kSpan + "-0b")->text().ends_with("-01"));
}

TEST_CASE("trace context: a later version may have more fields, version 00 may not") {
  CHECK(TraceContext::parse("01-" + kTrace + "-" + kSpan + "-01-more"));
  CHECK(TraceContext::parse("cc-" + kTrace + "-" + kSpan + "-01"));
  CHECK_FALSE(TraceContext::parse("01-" + kTrace + "-" + kSpan + "-01more"));
  CHECK_FALSE(TraceContext::parse("00-" + kTrace + "-" + kSpan + "-01-more"));
}

TEST_CASE("trace context: text of another form is refused") {
  const std::string zeros(32, '0');
  for (const std::string& text :
       {std::string(), std::string("00"), kTrace, "ff-" + kTrace + "-" + kSpan + "-01",
        "00-" + zeros + "-" + kSpan + "-01", "00-" + kTrace + "-" + zeros.substr(16) + "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + kSpan + "-01",
        "00-" + kTrace.substr(1) + "g-" + kSpan + "-01", "00_" + kTrace + "-" + kSpan + "-01",
        "00-" + kTrace + "_" + kSpan + "-01", "00-" + kTrace + "-" + kSpan + "_01",
        "00-" + kTrace + "-" + kSpan + "-0", "00-" + kTrace + "-" + kSpan + "-1x",
        "0x-" + kTrace + "-" + kSpan + "-01", " 00-" + kTrace + "-" + kSpan + "-01",
        "00-" + kTrace + "-" + kSpan + "-01 "}) {
    INFO(text);
    CHECK_FALSE(TraceContext::parse(text));
  }
}

TEST_CASE("trace context: a new trace and a child have valid ids of their own") {
  const TraceContext begun = TraceContext::start(true);
  CHECK(TraceContext::parse(begun.text()) == begun);
  CHECK(TraceContext::start(true).trace_id != begun.trace_id);
  const TraceContext child = begun.child();
  CHECK(child.trace_id == begun.trace_id);
  CHECK(child.span_id != begun.span_id);
  CHECK(child.is_sampled);
}

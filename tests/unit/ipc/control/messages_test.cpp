#include "ipc/control/messages.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "message_samples.hpp"

using namespace leasehold;
using leasehold::testing::message_samples;
using leasehold::testing::MessageSample;
using leasehold::testing::out_of_range_samples;
using nlohmann::json;

namespace {

const MessageSample& sample_named(const std::string& name) {
  return *std::ranges::find(message_samples(), name, &MessageSample::name);
}

void check_refused(const Result<json>& result, const std::string& field) {
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::BadRequest);
  CHECK_THAT(result.error().detail, Catch::Contains("'" + field));
}

/// One value of each JSON type.
const std::vector<json> kOtherTypes = {
    nullptr, true, 7, 2.5, "\n", json::array({nullptr}), json::object({{"a", 1}})};

/// A float field accepts an integer, but an integer field refuses a float.
bool same_kind(const json& a, const json& b) {
  if (a.is_number_float()) return b.is_number();
  return a.type() == b.type() || (a.is_number_integer() && b.is_number_integer());
}

}  // namespace

TEST_CASE("messages: every message reads back as it was written") {
  for (const auto& sample : message_samples()) {
    CAPTURE(sample.name);
    const auto again = sample.round_trip(sample.json());
    if (!again) FAIL(again.error().detail);
    CHECK(*again == sample.json());
  }
}

TEST_CASE("messages: unknown fields are ignored") {
  for (const auto& sample : message_samples()) {
    CAPTURE(sample.name);
    json extended = sample.json();
    extended["invented_later"] = 1;
    CHECK(sample.round_trip(extended) == sample.json());
  }
}

TEST_CASE("messages: an error names a missing field, an optional one stays missing") {
  for (const auto& sample : message_samples()) {
    const json whole = sample.json();
    for (const auto& [field, value] : whole.items()) {
      CAPTURE(sample.name, field);
      json less = whole;
      less.erase(field);
      if (sample.optionals.contains(field)) {
        CHECK(sample.round_trip(less) == less);
      } else {
        check_refused(sample.round_trip(less), field);
      }
    }
  }
}

TEST_CASE("messages: an error names a field of another type") {
  for (const auto& sample : message_samples()) {
    const json whole = sample.json();
    for (const auto& [field, value] : whole.items()) {
      for (const json& other : kOtherTypes) {
        if (same_kind(value, other) && !value.is_structured()) continue;
        if (field == "stop" && other.is_string()) continue;  // a string or an array of them
        CAPTURE(sample.name, field, other.dump());
        json wrong = whole;
        wrong[field] = other;
        check_refused(sample.round_trip(wrong), field);
      }
    }
  }
}

TEST_CASE("messages: an error names a field out of range") {
  for (const auto& bad : out_of_range_samples()) {
    for (const std::string& value : bad.values) {
      CAPTURE(bad.name, bad.pointer, value);
      json wrong = sample_named(bad.name).json();
      wrong.at(json::json_pointer(bad.pointer)) = json::parse(value);
      check_refused(sample_named(bad.name).round_trip(wrong), bad.field + "'");
    }
  }
}

TEST_CASE("messages: an error shows the range and the value of an integer") {
  json wrong = sample_named("TenantAdmit").json();
  wrong["weight"] = 4'294'967'297;
  CHECK(sample_named("TenantAdmit").round_trip(wrong).error().detail ==
        "field 'weight': expected an integer from 1 to 1000, got 4294967297");
}

TEST_CASE("messages: parameters must be an object") {
  for (const auto& sample : message_samples()) {
    CAPTURE(sample.name);
    for (const json& other : {json::array(), json("x"), json(nullptr), json(3)}) {
      const auto again = sample.round_trip(other);
      REQUIRE_FALSE(again);
      CHECK(again.error().code == Errc::BadRequest);
    }
  }
  CHECK(wire::Empty::from_json(json::object()).has_value());
  CHECK_FALSE(wire::Empty::from_json(json::array()).has_value());
}

TEST_CASE("messages: a revoke and a drain name one target, a request one prompt") {
  for (const std::string name : {"LeaseRevoke", "LeaseDrain"}) {
    json both = sample_named(name).json();
    both["lease"] = "17.4";
    both["tenant"] = "acme";
    check_refused(sample_named(name).round_trip(both), "lease");
    json neither = both;
    neither.erase("lease");
    neither.erase("tenant");
    check_refused(sample_named(name).round_trip(neither), "lease");
  }
  json both_kinds = sample_named("LeaseRevoke of a part").json();
  both_kinds["tenant"] = "acme";
  check_refused(sample_named("LeaseRevoke").round_trip(both_kinds), "part");
  json narrowed = sample_named("LeaseRevoke").json();
  narrowed["worker"] = "w0";
  check_refused(sample_named("LeaseRevoke").round_trip(narrowed), "worker");
  json both = sample_named("RequestSubmit").json();
  both["prompt_tokens"] = {1, 2};
  check_refused(sample_named("RequestSubmit").round_trip(both), "prompt");
  json tokens = both;
  tokens.erase("prompt");
  CHECK(sample_named("RequestSubmit").round_trip(tokens) == tokens);
  tokens["messages"] = json::array();
  check_refused(sample_named("RequestSubmit").round_trip(tokens), "messages");
  tokens.erase("prompt_tokens");
  tokens.erase("messages");
  check_refused(sample_named("RequestSubmit").round_trip(tokens), "prompt");
}

TEST_CASE("messages: stop accepts a string and a schema accepts an object") {
  json one = sample_named("Sampling").json();
  one["stop"] = "END";
  one["response_format"]["json_schema"]["schema"] = {{"type", "object"}};
  const auto sampling = wire::Sampling::from_json(one);
  REQUIRE(sampling);
  CHECK(sampling->stop.all == std::vector<std::string>{"END"});
  CHECK(sampling->response_format.schema == R"({"type":"object"})");
  CHECK(wire::Sampling::from_json({{"temperature", 0}, {"seed", 1}})->top_p == 1.0f);
}

TEST_CASE("messages: an error does not repeat a long value") {
  json wrong = sample_named("LeaseAcquire").json();
  wrong["tenant"] = std::string(1 << 20, 'x');
  CHECK(sample_named("LeaseAcquire").round_trip(wrong).error().detail.size() < 200);
}

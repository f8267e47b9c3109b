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

/// An older process does not send it, and a newer one sends it also when it is 0.
bool is_written_always(const std::string& message, const std::string& field) {
  return message == "RequestPreempted" && field == "swapped_blocks";
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
      if (is_written_always(sample.name, field)) {
        CHECK(sample.round_trip(less).value().contains(field));
      } else if (sample.optionals.contains(field)) {
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
        if (field == "clocks" && sample.name == "LeaseView" && other.is_object())
          continue;  // each clock may be missing
        if (field == "embedding" && value.is_object() && other.is_object())
          continue;  // each member may be missing
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
      check_refused(sample_named(bad.name).round_trip(wrong), bad.name_in_error() + "'");
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
  const auto patched = [](const std::string& name, const std::string& patch) {
    json sample = sample_named(name).json();
    sample.merge_patch(json::parse(patch));  // null removes a field
    return sample_named(name).round_trip(sample);
  };
  check_refused(patched("LeaseRevoke", R"({"tenant":"acme"})"), "lease");
  check_refused(patched("LeaseRevoke", R"({"lease":null})"), "lease");
  check_refused(patched("LeaseDrain", R"({"lease":"17.4"})"), "lease");
  check_refused(patched("LeaseDrain", R"({"tenant":null})"), "lease");
  check_refused(patched("LeaseDrain", R"({"worker":"w0"})"), "worker");
  check_refused(patched("LeaseUndrain", R"({"worker":"w0"})"), "worker");
  check_refused(patched("LeaseUndrain", R"({"tenant":null})"), "tenant");
  check_refused(patched("LeaseRevoke of a part", R"({"tenant":"acme"})"), "part");
  check_refused(patched("LeaseRevoke", R"({"worker":"w0"})"), "worker");
  check_refused(patched("RequestSubmit", R"({"prompt_tokens":[1,2]})"), "prompt");
  check_refused(patched("RequestSubmit", R"({"prompt":null})"), "prompt");
  check_refused(patched("RequestSubmit", R"({"prompt":null,"prompt_tokens":[1],"messages":[]})"),
                "messages");
  json tokens = sample_named("RequestSubmit").json();
  tokens.merge_patch({{"prompt", nullptr}, {"prompt_tokens", {1, 2}}});
  CHECK(sample_named("RequestSubmit").round_trip(tokens) == tokens);
}

TEST_CASE("messages: the tenants of a step are few, distinct, in falling order, and add up") {
  const json step = sample_named("WorkerStep").json();
  const auto with_tenants = [&](json tenants) {
    json changed = step;
    changed["tenants"] = std::move(tenants);
    return sample_named("WorkerStep").round_trip(changed);
  };
  const auto tokens = [](const std::string& tenant, int prefill, int decode) {
    return json{{"tenant", tenant}, {"prefill_tokens", prefill}, {"decode_tokens", decode}};
  };
  CHECK(with_tenants({tokens("a", 20, 3), tokens("b", 10, 4)}));
  check_refused(with_tenants({tokens("a", 3, 0), tokens("a", 2, 0)}), "tenants' has a twice");
  check_refused(with_tenants({tokens("a", 3, 0), tokens("b", 4, 0)}),
                "tenants' is not in falling order");
  check_refused(with_tenants({tokens("a", 30, 0), tokens("b", 1, 0)}),
                "tenants' sums to 31 prefill");
  check_refused(with_tenants(json::array({tokens("a", 0, 8)})),
                "tenants' sums to 0 prefill and 8 decode");
  json many = json::array();
  for (int i = 0; i < 17; ++i) many.push_back(tokens("t" + std::to_string(i), 1, 0));
  check_refused(with_tenants(many), "tenants");
  many.erase(16);
  CHECK(with_tenants(many));
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

TEST_CASE("messages: a schema is strict unless the request says otherwise") {
  json one = sample_named("Sampling").json();
  CHECK_FALSE(wire::Sampling::from_json(one)->response_format.strict);
  one["response_format"]["json_schema"]["strict"] = true;
  CHECK(wire::Sampling::from_json(one)->response_format.strict);
  one["response_format"]["json_schema"]["strict"] = nullptr;  // as some clients write a default
  CHECK(wire::Sampling::from_json(one)->response_format.strict);
  one["response_format"]["json_schema"].erase("strict");
  CHECK(wire::Sampling::from_json(one)->response_format.strict);
  CHECK(sample_named("Sampling").round_trip(one) == one);
}

TEST_CASE("messages: a reply lists a bounded number of unchecked parts") {
  json reply = sample_named("RequestSubmitted").json();
  reply["unchecked"] = json(std::vector<std::string>(32, "#: 'not'"));
  CHECK(sample_named("RequestSubmitted").round_trip(reply) == reply);
  reply["unchecked"].push_back("#: 'if'");
  check_refused(sample_named("RequestSubmitted").round_trip(reply), "unchecked");
}

TEST_CASE("messages: an error does not repeat a long value") {
  json wrong = sample_named("LeaseAcquire").json();
  wrong["tenant"] = std::string(1 << 20, 'x');
  CHECK(sample_named("LeaseAcquire").round_trip(wrong).error().detail.size() < 200);
}

TEST_CASE("messages: a page of requests has a column for each field that a request has") {
  const json page = sample_named("RequestPage").json();
  const auto read = wire::RequestPage::from_json(page).value();
  REQUIRE(read.items.size() == 2);
  CHECK(read.items[0].lease == LeaseId{3, 7});
  CHECK_FALSE(read.items[1].lease);
  CHECK(read.items[1].detached);
  const auto refused_with = [&](const std::string& pointer, const json& value) {
    json wrong = page;
    wrong.at(json::json_pointer(pointer)) = value;
    const auto refused = sample_named("RequestPage").round_trip(wrong);
    return refused ? "" : refused.error().detail;
  };
  CHECK_THAT(refused_with("/items/lease/1", 5), Catch::StartsWith("field 'items[1].lease': "));
  CHECK_THAT(refused_with("/items/id/0", nullptr), Catch::EndsWith("got nothing"));
  CHECK_THAT(refused_with("/items/state", json::array({"decode"})),
             Catch::StartsWith("field 'items.state': expected an array of 2, as the first"));
  CHECK_THAT(refused_with("/items/state", 7), Catch::StartsWith("field 'items.state': "));
}

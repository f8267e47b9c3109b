#include "ipc/control/events.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "ipc/segment/gate_set.hpp"

using namespace leasehold;
using nlohmann::json;

namespace {

const std::vector<std::string> kSamples = {
    R"({"event":"lease_state","at_boottime_ns":7,"lease":"17.4","state":"Fenced",
        "reason":"operator","tenant":"acme","proof":"LaunchQuiet"})",
    R"({"event":"region_state","at_boottime_ns":7,"region":3,"kind":"extent","state":"Free",
        "lease":""})",
    R"({"event":"forward_revoked","at_boottime_ns":7,"lease":"17.4","kernel_site":"kv_append",
        "layer":65535,"kv_position":12,"since_flip_ns":900})",
    R"({"event":"batched_decode_step","at_boottime_ns":7,"step":18446744073709551615,"n_seqs":2,
        "emitted_tokens":1,"per_seq_kv_positions":[4,4294967295],
        "per_seq_leases":["17.4","3.1"]})",
    R"({"event":"rebind","at_boottime_ns":7,"tenant":"acme","request":"r-1","old_lease":"17.4",
        "new_lease":"18.1","prompt_tokens":30,"emitted_tokens":12,"latency_ns":5,"mode":"adopt"})",
    R"({"event":"request_completed","at_boottime_ns":7,"request":"r-1","tenant":"acme",
        "lease":"17.4","reason":"Revoked","emitted_tokens":3})",
    R"({"event":"operator_action","at_boottime_ns":7,"action":"quarantine_release","object":"extent:5",
        "uid":1000,"reason":"the worker was replaced","done":true})",
    R"({"event":"worker_untrusted","at_boottime_ns":7,"what":"slot","index":17,"lease":"17.4",
        "worker":"w0"})",
    R"({"event":"worker_unresponsive","at_boottime_ns":7,"worker":"w0","waiting_for":"ping_reply",
        "timeout_ms":15000,"killed":true})",
    R"({"event":"lease_draining","at_boottime_ns":7,"lease":"17.4","tenant":"acme",
        "deadline_boottime_ns":9})",
    R"({"event":"worker_replacement","at_boottime_ns":7,"worker":"w1","by":"w2","state":"done",
        "leases_moved":8,"leases_ended":1})",
    R"({"event":"worker_service","at_boottime_ns":7,"worker":"w1","state":"out_of_service",
        "reason":"part blk.0: /m.gguf has 7 bytes"})",
    R"({"event":"key_expired","at_boottime_ns":7,"key":"0011223344556677","tenant":"acme",
        "name":"ci","expires_unix_ms":86400000})",
    R"({"event":"cell_membership","at_boottime_ns":7,"cell":"c1","incarnation":9})",
    R"({"event":"adapter_loaded","at_boottime_ns":7,"adapter":"support","version":2,
        "tenant":"acme","lease":"17.4","worker":"w1","size_bytes":2097152})",
    R"({"event":"adapter_evicted","at_boottime_ns":7,"adapter":"support","version":2,"tenant":"",
        "lease":"17.4","worker":"w1","reason":"model_unloaded"})"};

void check_event_refused(const json& event, const std::string& field) {
  CAPTURE(event.dump());
  const auto read = events::from_json(event);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Errc::BadRequest);
  CHECK_THAT(read.error().detail, Catch::Contains("'" + field + "'"));
}

}  // namespace

TEST_CASE("events: every event reads back as it was written") {
  REQUIRE(kSamples.size() == std::variant_size_v<events::Event>);
  for (const auto& text : kSamples) {
    const json sample = json::parse(text);
    const auto read = events::from_json(sample);
    if (!read) FAIL(read.error().detail);
    CHECK(read->at == TimePoint{7});
    CHECK(events::name(read->event) == sample["event"].get<std::string>());
    CHECK(events::to_json(read->event, read->at) == sample);
  }
}

TEST_CASE("events: an error names the missing or invalid field") {
  for (const auto& text : kSamples) {
    const json whole = json::parse(text);
    for (const auto& [field, value] : whole.items()) {
      json less = whole;
      less.erase(field);
      json wrong = whole;
      wrong[field] = json::object();
      if (field != "latency_ns" && field != "mode") check_event_refused(less, field);
      check_event_refused(wrong, field);
    }
  }
}

TEST_CASE("events: a rebind always has a mode, and a latency only if it is known") {
  events::Rebind rebind{.tenant = "acme", .request = {"r-1"}};
  const json written = events::to_json(rebind, TimePoint{7});
  CHECK(written.at("mode") == "reprefill");
  CHECK_FALSE(written.contains("latency_ns"));
  rebind.mode = wire::RebindMode::Adopt;
  CHECK(events::to_json(rebind, TimePoint{7}).at("mode") == "adopt");
}

TEST_CASE("events: a rebind and the end of a stream name the trace of their request, if any") {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  events::Rebind rebind{.tenant = "acme", .request = {"r-1"}};
  CHECK_FALSE(events::to_json(rebind, TimePoint{7}).contains("trace_id"));
  rebind.trace_id = trace;
  CHECK(events::to_json(rebind, TimePoint{7}).at("trace_id") == trace);
  json ended = json::parse(kSamples[5]);
  ended["trace_id"] = trace;
  const auto read = events::from_json(ended);
  REQUIRE(read);
  CHECK(std::get<events::RequestCompletedEvent>(read->event).trace_id == trace);
  CHECK(events::to_json(read->event, read->at) == ended);
}

TEST_CASE("events: the end of a stream may name its scope, as one of the list") {
  json ended = json::parse(kSamples[5]);
  ended["scope"] = "shared";
  const auto read = events::from_json(ended);
  REQUIRE(read);
  CHECK(std::get<events::RequestCompletedEvent>(read->event).scope == "shared");
  CHECK(events::to_json(read->event, read->at) == ended);
  ended["scope"] = "room";
  check_event_refused(ended, "scope");
}

TEST_CASE("events: values outside their list or range are refused") {
  const std::vector<std::tuple<std::size_t, std::string, json>> cases = {
      {0, "event", "lease_vanished"}, {0, "state", "Gone"},     {0, "reason", "mood"},
      {1, "kind", "scratch"},         {1, "lease", "x"},        {2, "layer", 65536},
      {2, "kernel_site", "nowhere"},  {3, "n_seqs", 1ll << 32}, {5, "reason", ""},
      {6, "reason", "two\nlines"},    {6, "uid", -1},           {7, "lease", "x"}};
  for (const auto& [index, field, value] : cases) {
    json wrong = json::parse(kSamples[index]);
    wrong[field] = value;
    check_event_refused(wrong, field);
  }
  CHECK_FALSE(events::from_json(json::array()).has_value());
}

TEST_CASE("events: arrays have at most one element per sequence, texts 200 bytes") {
  json step = json::parse(kSamples[3]);
  step["per_seq_kv_positions"] = json(kMaxStepSequences, 7);
  step["per_seq_leases"] = json(kMaxStepSequences, "17.4");
  CHECK(events::from_json(step).has_value());

  const auto refuses = [](json event, const std::string& field, json value) {
    event[field] = std::move(value);
    check_event_refused(event, field);
  };
  refuses(step, "per_seq_kv_positions", json(kMaxStepSequences + 1, 7));
  refuses(step, "per_seq_leases", json(kMaxStepSequences + 1, "17.4"));
  const std::string long_text(201, 'x');
  refuses(json::parse(kSamples[0]), "proof", long_text);
  refuses(json::parse(kSamples[1]), "state", long_text);
  refuses(json::parse(kSamples[5]), "reason", long_text);
  refuses(json::parse(kSamples[6]), "action", long_text);
  refuses(json::parse(kSamples[7]), "what", long_text);
}

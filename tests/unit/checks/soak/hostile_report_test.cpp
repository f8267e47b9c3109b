#include "tests/checks/soak/hostile/report.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>

using namespace leasehold;
using namespace leasehold::soak;

namespace {

constexpr std::int64_t kMs = 1'000'000;

TimePoint at_ms(std::int64_t ms) {
  return {ms * kMs};
}

/// A text with a token every 10 ms, revoked once between two of them.
runner::Text text_of(const std::string& tenant, std::size_t tokens) {
  runner::Text text{.tenant = tenant, .record = {}, .undisturbed = {}};
  for (std::size_t i = 0; i < tokens; ++i) {
    text.undisturbed.push_back(static_cast<std::int32_t>(i));
    text.record.tokens.push_back(static_cast<std::int32_t>(i));
    text.record.token_times.push_back(at_ms(10 * static_cast<std::int64_t>(i)));
  }
  text.record.completed = "Length";
  return text;
}

/// All promises are kept.
HostileRecord good_record() {
  HostileRecord record;
  record.windows = {{WindowKind::Calm, at_ms(0), at_ms(1'000)},
                    {WindowKind::Control, at_ms(1'000), at_ms(2'000)},
                    {WindowKind::Hostile, at_ms(2'000), at_ms(3'000)}};
  for (const char* tenant : {"a", "b"}) record.texts.push_back(text_of(tenant, 301));
  const LeaseId lease{4, 2};
  record.texts[0].record.revocations = {{.lease = lease, .reason = "operator", .after_tokens = 9}};
  record.texts[0].record.reported = {
      {.event = "revoked", .at = at_ms(2'505), .lease = lease, .why = {}, .detail = {}}};
  record.revocations = {{.lease = lease,
                         .window = WindowKind::Hostile,
                         .flipped = at_ms(2'503),
                         .clocks = {.refuse_ns = 1 * kMs, .error_ns = -1, .quiet_ns = 3 * kMs}}};
  for (int ms = 0; ms < 3'000; ms += 5)
    record.http_requests.push_back({.from = at_ms(ms), .to = at_ms(ms + (ms < 2'000 ? 2 : 3))});
  record.expected_attacks = {"long lines"};
  record.attacks["long lines"] = {.runs = 1, .connections = 5, .replies = {}};
  record.broker = {.before_bytes = 10, .peak_bytes = 10};
  record.worker = {.before_bytes = 10, .peak_bytes = 10};
  record.state_disk = {.size_bytes = 12 << 20, .peak_bytes = 5 << 20};
  record.worker_kept_link = true;
  record.last = wire::StatusView{.capacity_bytes = 2, .free_bytes = 2};
  return record;
}

/// The number of checks that fail after a change of the good record.
std::ptrdiff_t failures_after(const std::function<void(HostileRecord&)>& change) {
  HostileRecord record = good_record();
  change(record);
  return std::ranges::count(judge_hostile(record), false, &runner::Check::ok);
}

}  // namespace

TEST_CASE("hostile report: gaps are those of one window, without revocations") {
  const HostileRecord record = good_record();
  const auto calm = gaps_us(record.texts[0].record, record.windows[0]);
  CHECK(calm.size() == 100);
  CHECK(std::ranges::all_of(calm, [](double us) { return us == 10'000; }));
  CHECK(gaps_us(record.texts[0].record, record.windows[2]).size() == 99);
  CHECK(gaps_us(record.texts[1].record, record.windows[2]).size() == 100);
}

TEST_CASE("hostile report: ratios compare the attack with control and calm windows") {
  HostileRecord record = good_record();
  for (auto& text : record.texts) {
    auto& times = text.record.token_times;
    for (std::size_t i = 201; i < times.size(); ++i)
      times[i] = at_ms(2'000 + 15 * (static_cast<std::int64_t>(i) - 200));
  }
  record.windows[2].to = at_ms(4'000);
  const auto report = hostile_json(record, 4);
  CHECK(report.at("inter_token_us").at("p99_ratio_to_control") == Approx(1.5));
  CHECK(report.at("inter_token_us").at("p50_ratio_to_calm") == Approx(1.5));
  CHECK(report.at("http_request_us").at("p99_ratio_to_calm") == Approx(1.5));
  CHECK(report.at("unit_us") == Approx(2'500));
  const auto& clocks = report.at("clocks").at("hostile");
  CHECK(clocks.at("t_refuse_us").at("p50") == Approx(1'000));
  CHECK(clocks.at("t_error_us").at("p50") == Approx(2'000));
  CHECK(clocks.at("t_handed_us").at("n") == 0);  // it did not end in time
}

TEST_CASE("hostile report: each thread's wait is given per second of each kind of window") {
  HostileRecord record = good_record();
  const auto waited = [](std::uint64_t ms) {
    return ServerThreads{.broker = {{"main", {.ran_ns = 7 * kMs, .waited_ns = 0}}},
                         .worker = {{"main", {.ran_ns = 0, .waited_ns = ms * kMs}}}};
  };
  record.windows[0].threads = waited(40);  // in 1 s
  record.windows[2].threads = waited(80);
  record.windows.push_back({WindowKind::Hostile, at_ms(5'000), at_ms(8'000), waited(80)});
  const auto report = hostile_json(record, 4);
  const auto& threads = report.at("threads_ms_per_s");
  CHECK(threads.at("calm").at("worker").at("main").at("waited") == Approx(40));
  CHECK(threads.at("control").at("worker").empty());
  CHECK(threads.at("hostile").at("worker").at("main").at("waited") == Approx(40));
  CHECK(threads.at("hostile").at("broker").at("main").at("ran") == Approx(3.5));
  CHECK(hostile_text(report).find("worker main") != std::string::npos);
}

TEST_CASE("hostile report: a clock is also given without its threads' wait for a core") {
  HostileRecord record = good_record();
  record.revocations[0].threads = {.broker = {{"main", {.ran_ns = 0, .waited_ns = kMs}}},
                                   .worker = {{"main", {.ran_ns = 0, .waited_ns = kMs / 2}},
                                              {"parser", {.ran_ns = 0, .waited_ns = 100 * kMs}}}};
  const auto clocks = hostile_json(record, 4).at("clocks").at("hostile");
  CHECK(clocks.at("t_quiet_us").at("p90") == Approx(3'000));
  CHECK(clocks.at("without_run_queue_delay").at("t_quiet_us").at("p90") == Approx(1'500));
  CHECK(clocks.at("without_run_queue_delay").at("t_refuse_us").at("p50") == Approx(500));
  CHECK(clocks.at("without_run_queue_delay").at("t_error_us").at("p50") == Approx(1'500));
}

TEST_CASE("hostile report: a ratio of few gaps is left out") {
  HostileRecord record = good_record();
  record.windows[1].to = record.windows[1].from;
  const auto gaps = hostile_json(record, 4)["inter_token_us"];
  CHECK_FALSE(gaps.contains("p99_ratio_to_control"));
  CHECK(gaps.contains("p99_ratio_to_calm"));
}

TEST_CASE("hostile report: each broken promise fails one check") {
  CHECK(failures_after([](auto&) {}) == 0);
  CHECK(failures_after([](auto& r) { r.failure = "the worker ended"; }) == 1);
  CHECK(failures_after([](auto& r) { r.worker_kept_link = false; }) == 1);
  CHECK(failures_after([](auto& r) { r.http_requests[3].is_answered = false; }) == 1);
  CHECK(failures_after([](auto& r) { r.texts[1].record.tokens[3] = 999; }) == 1);
  CHECK(failures_after([](auto& r) { r.texts[1].record.tokens.pop_back(); }) == 1);
  CHECK(failures_after([](auto& r) { r.texts[1].record.failed = "QueueFull: x"; }) == 1);
  CHECK(failures_after([](auto& r) { r.texts[0].record.revocations.clear(); }) == 1);
  CHECK(failures_after([](auto& r) { r.expected_attacks.push_back("never made"); }) == 1);
  CHECK(failures_after([](auto& r) { r.attacks["long lines"].refused_connections = 5; }) == 1);
  CHECK(failures_after([](auto& r) { r.worker.peak_bytes = kMaxWorkerGrowthBytes + 11; }) == 1);
  CHECK(failures_after([](auto& r) { r.broker.peak_bytes = kMaxBrokerGrowthBytes + 11; }) == 1);
  CHECK(failures_after([](auto& r) { r.state_disk.peak_bytes = r.state_disk.size_bytes; }) == 1);
  CHECK(failures_after([](auto& r) { r.attacks["long lines"].replies["DiskFull"] = 1; }) == 1);
  CHECK(failures_after([](auto& r) { r.last->free_bytes = 1; }) == 1);
}

TEST_CASE("hostile report: a text that has not ended is part of the undisturbed one") {
  CHECK(failures_after([](auto& r) {
          r.texts[1].record.tokens.resize(7);
          r.texts[1].record.completed.reset();
        }) == 0);
}

TEST_CASE("hostile report: a run without a complete text proves nothing") {
  CHECK(failures_after([](auto& r) {
          for (auto& text : r.texts) text.record.completed.reset();
        }) == 1);
}

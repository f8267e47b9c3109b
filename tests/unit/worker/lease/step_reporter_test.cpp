#include "worker/lease/step_reporter.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace leasehold {
namespace {

/// A broker that replies when the test says so, and an I/O thread that runs when it says so.
struct Reports {
  StepSampler sampler;
  std::deque<std::function<void()>> posted;
  std::vector<wire::WorkerStep> sent;
  std::function<void()> on_reply;
  StepReporter reporter{
      {.sampler = &sampler,
       .post = [this](std::function<void()> work) { posted.push_back(std::move(work)); },
       .send =
           [this](const wire::WorkerStep& step, std::function<void()> reply) {
             sent.push_back(step);
             on_reply = std::move(reply);
           }}};

  Reports() { sampler.set_interval(std::chrono::milliseconds(100)); }
  void run_io() {
    while (!posted.empty()) {
      const auto work = std::move(posted.front());
      posted.pop_front();
      work();
    }
  }
  void reply() { std::exchange(on_reply, nullptr)(); }
};

StepSample sample(std::uint64_t step) {
  return {.step = step, .n_seqs = 1, .tenants = {{{"a"}, {.prefill = 2, .decode = 1}}}};
}

}  // namespace

TEST_CASE("step reporter: one report is on its way, and the newest sample follows its reply") {
  Reports reports;
  reports.reporter.deliver(sample(1));
  reports.run_io();
  REQUIRE(reports.sent.size() == 1);
  for (std::uint64_t step = 2; step <= 50; ++step) reports.reporter.deliver(sample(step));
  CHECK(reports.posted.size() == 1);
  reports.run_io();
  CHECK(reports.sent.size() == 1);

  reports.reply();
  REQUIRE(reports.sent.size() == 2);
  CHECK(reports.sent[1].step == 50);
  reports.reply();
  CHECK(reports.sent.size() == 2);
  reports.reporter.deliver(sample(51));
  reports.run_io();
  CHECK(reports.sent.size() == 3);
}

TEST_CASE("step reporter: nothing is sent once sampling has stopped") {
  Reports reports;
  reports.reporter.deliver(sample(1));
  reports.sampler.set_interval(Duration::zero());
  reports.run_io();
  CHECK(reports.sent.empty());
}

TEST_CASE("step reporter: a report names the tenants with the most tokens and counts the others") {
  Reports reports;
  StepSample crowded = sample(7);
  crowded.tenants.clear();
  for (std::uint32_t i = 1; i <= 20; ++i) crowded.tenants[{"t" + std::to_string(i)}].decode = i;
  crowded.tenants[{"t3"}].prefill = 100;
  crowded.duration = std::chrono::microseconds(1234);
  reports.reporter.deliver(crowded);
  reports.run_io();

  REQUIRE(reports.sent.size() == 1);
  const wire::WorkerStep& report = reports.sent[0];
  REQUIRE(report.tenants.size() == wire::kMaxStepTenants);
  CHECK(report.tenants[0].tenant == TenantId{"t3"});
  CHECK(report.tenants[1].tenant == TenantId{"t20"});
  CHECK(report.tenants[15].tenant == TenantId{"t6"});
  CHECK(report.other_tenants == 4);
  CHECK(report.prefill_tokens == 100);
  CHECK(report.decode_tokens == 210);
  CHECK(report.duration_us == 1234);
  CHECK(wire::WorkerStep::from_json(report.to_json()));
}

}  // namespace leasehold

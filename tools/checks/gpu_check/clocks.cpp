// The clocks stage: runs broker, device agent and a worker with gated graphs as processes, and
// revokes leases of their tenants at random; then measures flips in one process with a model of a
// real shape.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "tools/checks/bench/clocks.hpp"
#include "tools/checks/bench/statistics.hpp"
#include "tools/checks/gpu_check/bench_cases.hpp"
#include "tools/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

struct Clock {
  const char* name;
  double bench::ClockTimes::* value;
};

constexpr Clock kClocks[] = {{"t_refuse", &bench::ClockTimes::refuse_us},
                             {"t_quiet", &bench::ClockTimes::quiet_us},
                             {"t_error", &bench::ClockTimes::error_us},
                             {"t_reuse", &bench::ClockTimes::reuse_us}};

bench::ClockSetup setup_for(const Settings& settings) {
  const std::string device = fmt::format("cuda:{}", settings.ordinal);
  return {.model = settings.tiny ? kSmallestModel : kDemoModel,
          .model_path =
              settings.model_dir + "/" + (settings.tiny ? kSmallestModel : kDemoModel) + ".gguf",
          .bin_dir = settings.bin_dir,
          .tenants = settings.tiny ? 2u : 8u,
          .samples = settings.tiny ? 3u : 200u,
          .capacity = settings.tiny ? "64MiB" : "512MiB",
          .broker_options = {"--device", device},
          .worker_options = {"--device", device, "--graphs", "gated"}};
}

void report_clocks(StageReport& report, const bench::ClockRun& run) {
  report.numbers()["clocks"] = {{"model", run.setup.model},
                                {"graphs", "gated"},
                                {"tenants", run.setup.tenants},
                                {"revocations", run.samples.size()},
                                {"seconds", run.seconds}};
  for (const Clock& clock : kClocks) {
    const std::string what = fmt::format("{}, processes with gated graphs", clock.name);
    const std::vector<double> values = bench::values_of(run, clock.value, true);
    if (values.empty()) {
      report.unknown(what, fmt::format("no revocation of {} met it", run.samples.size()));
      continue;
    }
    const bench::Distribution times = bench::distribution_of(values);
    report.numbers()[std::string(clock.name) + "_us"] = {
        {"count", times.count}, {"p50", times.p50}, {"p99", times.p99}, {"max", times.max}};
    report.measured(
        what, fmt::format("p50 {:.0f} us, p99 {:.0f} us of {}", times.p50, times.p99, times.count));
  }
}

/// Reports an error as a broken promise: a revocation without its typed end, or memory that does
/// not become free.
Result<void> measure_processes(const Settings& settings, StageReport& report) {
  constexpr const char* kWhat = "every revocation ends, and its memory is free";
  if (!processes_share_memory(settings)) {
    report.unknown(kWhat, "processes cannot share GPU memory here; see the stage kills");
    return {};
  }
  const bench::ClockSetup setup = setup_for(settings);
  if (!std::filesystem::exists(settings.bin_dir + "/leasehold-broker") ||
      !std::filesystem::exists(setup.model_path)) {
    report.unknown(kWhat, "broker or model are not in this bundle");
    return {};
  }
  const Result<bench::ClockRun> run = bench::measure_clocks(setup);
  if (!run) {
    report.failed(kWhat, run.error());
    return {};
  }
  report.require(kWhat, true, fmt::format("{} of {}", run->samples.size(), setup.samples));
  report_clocks(report, *run);
  return {};
}

}  // namespace

Result<void> check_clocks(const Settings& settings, StageReport& report) {
  TRY(measure_processes(settings, report));
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  const BenchCase one = TRY(first_case(settings));
  const Result<void> flipped = bench_revoke(settings, report, *card, one);
  (void)std::remove(one.file.path.c_str());
  report_failure(report, one.title + " revoke", flipped);
  return {};
}

}  // namespace leasehold::gpu_check

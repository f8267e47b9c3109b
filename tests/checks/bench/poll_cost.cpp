#include "tests/checks/bench/poll_cost.hpp"

#include <algorithm>
#include <string>
#include <system_error>

#include "kernels/cpu/thread_pool.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/local_model/local_leases.hpp"
#include "tests/checks/local_model/local_model.hpp"
#include "worker/engine/worker_gates.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kSequences = 8;
constexpr int kRounds = 9;

/// The asm statement keeps the compiler from removing or merging units.
void empty_unit() {
  asm volatile("" ::: "memory");
}

template <class Unit>
double mean_ns(std::uint64_t units, Unit&& unit) {
  const double begin = thread_time_ns();
  for (std::uint64_t i = 0; i < units; ++i) unit();
  return (thread_time_ns() - begin) / static_cast<double>(units);
}

constexpr double kWorkNs = 5'000;  // about a thread's mean work in a launch

void work() {
  const double end = wall_time_ns() + kWorkNs;
  while (wall_time_ns() < end) {
  }
}

template <class Tile>
double launch_us(ThreadPool& pool, Tile&& tile) {
  const double begin = wall_time_ns();
  pool.run(pool.threads(), [&](std::uint32_t, std::uint32_t) {
    tile();
    return true;
  });
  return (wall_time_ns() - begin) / 1e3;
}

}  // namespace

Result<double> measure_gate_ns(std::uint64_t units) {
  LocalLeases leases = TRY(LocalLeases::create(kSequences));
  const StopFlags stops;
  NullRefusalListener null_listener;
  GateSet set(1, stops, null_listener);
  for (std::uint32_t slot = 0; slot < kSequences; ++slot) {
    const LeaseId lease{.slot = slot, .generation = 1};
    leases.table.grant(lease, {});
    const LeaseDependency dependency = TRY(leases.reader.dependency(lease));
    set.add_sequence({&dependency, 1});
  }
  UnitProbe probe(std::chrono::microseconds(0));
  auto gates = make_gates({.worker = WorkerId{0},
                           .table = &leases.reader,
                           .segment = &leases.writer,
                           .stops = &stops,
                           .probe = &probe},
                          0, 1);
  const UnitLabel label{LaunchSite::FfnUp, 0, Touches::WeightsAndScratch};
  const auto gated_unit = [&] { gates.front().run(set, label, [](const auto&) { empty_unit(); }); };
  std::vector<double> gated;
  std::vector<double> bare;
  for (int round = 0; round < kRounds; ++round) {  // interleaved, so that both have the same noise
    bare.push_back(mean_ns(units, empty_unit));
    gated.push_back(mean_ns(units, gated_unit));
  }
  return median_of(gated) - median_of(bare);
}

Result<StepCost> measure_step(const std::string& model_path, std::uint32_t steps) {
  const auto model = TRY(LocalModel::load({.model_path = model_path}));
  constexpr LocalRow kRow{.token = 100};
  TRY(model->forward({&kRow, 1}));
  const std::uint64_t units_before = model->units();
  std::vector<double> times_us;
  for (std::uint32_t i = 0; i < steps; ++i) {
    const double begin_ns = thread_time_ns();
    TRY(model->forward({&kRow, 1}));
    times_us.push_back((thread_time_ns() - begin_ns) / 1e3);
  }
  return StepCost{static_cast<double>(model->units() - units_before) / static_cast<double>(steps),
                  median_of(times_us)};
}

Result<Samples> measure_launch(std::uint32_t threads, std::uint32_t launches) {
  try {
    ThreadPool pool(threads);
    Samples samples;
    for (std::uint32_t i = 0; i < launches; ++i) {
      samples["empty_us"].push_back(launch_us(pool, [] {}));
      samples["meeting_us"].push_back(std::max(launch_us(pool, work) - kWorkNs / 1e3, 0.0));
    }
    return samples;
  } catch (const std::system_error& error) {
    return fail(Errc::SystemError, std::string("cannot start the compute threads: ") +
                                       error.what() + "; use fewer --threads");
  }
}

}  // namespace leasehold::bench

// Measures how long the device agent takes to clear memory before it is lent again.
#include <fmt/format.h>

#include <chrono>

#include "ipc/cuda/memory_cleaner.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kMibBytes = 1 << 20;

Result<std::vector<double>> clear_times_us(Card& card, std::size_t size_bytes, int count) {
  const cuda::MemoryCleaner cleaner = TRY(cuda::MemoryCleaner::create(card.context()));
  const cuda::DeviceMemory memory = TRY(cuda::DeviceMemory::create(card.context(), size_bytes));
  TRY(cleaner.clear(memory));  // warms up
  std::vector<double> times_us;
  for (int i = 0; i < count; ++i) {
    const auto begun = SteadyClock::now();
    TRY(cleaner.clear(memory));
    const std::chrono::duration<double, std::micro> took = SteadyClock::now() - begun;
    times_us.push_back(took.count());
  }
  return times_us;
}

}  // namespace

Result<void> probe_clear(const Settings& settings, StageReport& report, Card& card) {
  struct Case {
    const char* what;
    std::size_t mib;
  };
  const Case cases[] = {{"an extent", 2}, {"a region", settings.tiny ? 8u : 512u}};
  for (const Case& one : cases) {
    const bench::Distribution times = bench::distribution_of(
        TRY(clear_times_us(card, one.mib * kMibBytes, settings.tiny ? 3 : 50)));
    report.numbers()["clear"].push_back(
        {{"mib", one.mib}, {"p50_us", times.p50}, {"p99_us", times.p99}});
    report.measured(
        fmt::format("memory: clear {} of {} MiB, with map and unmap", one.what, one.mib),
        fmt::format("p50 {:.0f} us, p99 {:.0f} us, {:.1f} GB/s", times.p50, times.p99,
                    static_cast<double>(one.mib * kMibBytes) / times.p50 / 1e3));
  }
  return {};
}

}  // namespace leasehold::gpu_check

// Probes of memory: how long the device agent takes to clear it before it is lent again, whether a
// mapping can be read-only, and when memory is free after the death of its holder.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "ipc/cuda/device_memory.hpp"
#include "ipc/cuda/memory_cleaner.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/gpu_check/importer.hpp"
#include "tests/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kDeaths = 5;
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

/// The result is not a promise; it decides whether weights can be read-only on this driver.
Result<void> ask_read_only(const Settings& settings, StageReport& report, Card& card) {
  constexpr std::size_t kSize = 2 << 20;
  const cuda::DeviceMemory memory = TRY(cuda::DeviceMemory::create(card.context(), kSize));
  const cuda::DeviceMapping mapping = TRY(cuda::DeviceMapping::map(memory, MapAccess::ReadWrite));
  TRY(write_first_word(card, mapping.address()));
  const UniqueFd fd = TRY(memory.export_fd());
  Importer importer = TRY(start_importer(settings, ImportMode::WriteReadOnly, fd, kSize));
  const bool written = TRY(second_word(card, mapping.address())) == kReplyWord;
  report.numbers()["read_only_honoured"] = !written;
  report.measured("memory: a read-only mapping cannot be written",
                  written ? "no: the driver permits the write"
                          : fmt::format("yes ({})", text_of(importer.result)));
  return {};
}

struct Death {
  double free_us = 0;      ///< From the pidfd's event until as much memory is free as before.
  double missing_mib = 0;  ///< Missing at the pidfd's event.
  bool came_back = false;
};

/// Kills the importer while it is the last holder of the memory.
Result<Death> kill_holder(const Settings& settings, Card& card, std::size_t size_bytes) {
  const std::uint64_t before = TRY(card.context().memory()).free_bytes;
  const auto start_holding = [&]() -> Result<Importer> {
    const cuda::DeviceMemory memory = TRY(cuda::DeviceMemory::create(card.context(), size_bytes));
    const cuda::DeviceMapping mapping = TRY(cuda::DeviceMapping::map(memory, MapAccess::ReadWrite));
    TRY(write_first_word(card, mapping.address()));
    const UniqueFd fd = TRY(memory.export_fd());
    return start_importer(settings, ImportMode::Share, fd, size_bytes);
  };
  Importer importer = TRY(start_holding());
  if (importer.result != ImportResult::Done)
    return fail(Errc::SystemError, text_of(importer.result));
  TRY(kill_importer(importer));
  const auto ended = SteadyClock::now();
  const std::uint64_t enough = before - size_bytes / 8;
  const std::uint64_t at_once = TRY(card.context().memory()).free_bytes;
  std::uint64_t free_bytes = at_once;
  while (free_bytes < enough && SteadyClock::now() - ended < std::chrono::seconds(10))
    free_bytes = TRY(card.context().memory()).free_bytes;
  const std::chrono::duration<double, std::micro> took = SteadyClock::now() - ended;
  return Death{
      .free_us = at_once >= enough ? 0.0 : took.count(),
      .missing_mib = at_once >= before ? 0.0 : static_cast<double>(before - at_once) / (1 << 20),
      .came_back = free_bytes >= enough};
}

Result<void> measure_deaths(const Settings& settings, StageReport& report, Card& card) {
  const std::size_t size_bytes = std::size_t{settings.tiny ? 16u : 512u} << 20;
  std::vector<double> free_us;
  double missing_mib = 0;
  bool all_back = true;
  for (int i = 0; i < kDeaths; ++i) {
    const Death death = TRY(kill_holder(settings, card, size_bytes));
    free_us.push_back(death.free_us);
    missing_mib = std::max(missing_mib, death.missing_mib);
    all_back = all_back && death.came_back;
  }
  report.numbers()["freed_after_pidfd_us"] = free_us;
  report.numbers()["missing_at_pidfd_mib"] = missing_mib;
  report.require("memory: comes back when its last holder is killed", all_back);
  report.measured("memory: free after the pidfd event, worst of 5",
                  fmt::format("{:.0f} us, {:.1f} MiB missing at that moment",
                              *std::ranges::max_element(free_us), missing_mib));
  return {};
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
    report.add_row(
        "clear", {{"mib", one.mib}, {"p50_us", times.p50}, {"p99_us", times.p99}},
        judged(fmt::format("memory: clear {} of {} MiB, with map and unmap", one.what, one.mib),
               fmt::format("p50 {:.0f} us, p99 {:.0f} us, {:.1f} GB/s", times.p50, times.p99,
                           static_cast<double>(one.mib * kMibBytes) / times.p50 / 1e3),
               {}));
  }
  return {};
}

Result<void> probe_sharing(const Settings& settings, StageReport& report, Card& card) {
  TRY(ask_read_only(settings, report, card));
  return measure_deaths(settings, report, card);
}

}  // namespace leasehold::gpu_check

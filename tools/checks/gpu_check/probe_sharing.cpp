// Checks whether a mapping can be read-only, and measures when memory is free after the death of
// its holder.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "ipc/cuda/device_memory.hpp"
#include "tools/checks/gpu_check/importer_process.hpp"
#include "tools/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kDeaths = 5;

/// The result is not a promise; it shows whether weights can be read-only on this driver.
Result<void> ask_read_only(const Settings& settings, StageReport& report, Card& card) {
  constexpr std::size_t kSize = 2 << 20;
  const cuda::DeviceMemory memory = TRY(cuda::DeviceMemory::create(card.context(), kSize));
  const cuda::DeviceMapping mapping = TRY(cuda::DeviceMapping::map(memory, MapAccess::ReadWrite));
  TRY(write_first_word(card, mapping.address()));
  const UniqueFd fd = TRY(memory.export_fd());
  Importer importer = TRY(start_importer(settings, ImportMode::WriteReadOnly, fd, kSize));
  await_result(importer);
  const bool written = TRY(second_word(card, mapping.address())) == kReplyWord;
  report.numbers()["read_only_honoured"] = !written;
  report.measured("memory: a read-only mapping cannot be written",
                  written ? "no: the driver permits the write"
                          : fmt::format("yes ({})", text_of(importer.result)));
  return {};
}

struct Death {
  /// Time from the exit that the pidfd reports until the memory is free again.
  double free_us = 0;
  double missing_mib = 0;  ///< Memory that is missing when the pidfd reports the exit.
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
    Importer importer = TRY(start_importer(settings, ImportMode::Share, fd, size_bytes));
    await_result(importer);
    return importer;
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

Result<void> probe_sharing(const Settings& settings, StageReport& report, Card& card) {
  TRY(ask_read_only(settings, report, card));
  return measure_deaths(settings, report, card);
}

}  // namespace leasehold::gpu_check

// The stages machine (properties of the machine and the GPU) and probe (features that the GPU
// supports).
#include <fmt/format.h>
#include <unistd.h>

#include "common/process.hpp"
#include "ipc/region/mapping.hpp"
#include "ipc/region/memory_object.hpp"
#include "tools/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

constexpr std::uint64_t kMib = 1 << 20;

/// Creates a memfd and seals it against writes, as for weights on a CPU.
Result<void> seal_one() {
  MemoryObject object =
      TRY(MemoryObject::create({.name = "gpu-check", .size_bytes = 1 << 16, .final_seals = false}));
  TRY(object.seal_against_writing());
  if (LeasedMapping::map(object.fd(), 1 << 16, MapAccess::ReadWrite))
    return fail(Errc::SystemError, "a sealed memfd was mapped for writing");
  return {};
}

Result<void> describe_card(StageReport& report, Card& card) {
  int version = 0;
  const cuda::Driver& driver = card.context().driver();
  TRY(cuda::check(driver, driver.cuDriverGetVersion(&version), "asking the driver's version"));
  const std::string name = TRY(card.context().name());
  const cuda::DeviceMemoryInfo memory = TRY(card.context().memory());
  const int major = TRY(card.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  const int minor = TRY(card.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  const int sms = TRY(card.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  report.numbers()["card"] = {{"name", name},
                              {"driver", version},
                              {"compute_capability", fmt::format("{}.{}", major, minor)},
                              {"multiprocessors", sms},
                              {"memory_bytes", memory.total_bytes},
                              {"free_bytes", memory.free_bytes}};
  report.measured(
      "card", fmt::format("{}, sm_{}{}, {} SMs, {} of {} MiB free, driver {}", name, major, minor,
                          sms, memory.free_bytes / kMib, memory.total_bytes / kMib, version));
  return {};
}

}  // namespace

Result<void> check_machine(const Settings& settings, StageReport& report) {
  const Result<void> sealed = seal_one();
  report.numbers()["seals"] = sealed.has_value();
  report.supported("machine: memfd seals hold", sealed);
  const auto pidfd = open_pidfd(::getpid());
  report.numbers()["pidfd"] = pidfd.has_value();
  report.supported("machine: pidfd_open", pidfd);
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  TRY(describe_card(report, *card));
  record_card_state(settings, report, *card, "before the checks");
  return {};
}

Result<void> probe(const Settings& settings, StageReport& report) {
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  TRY(probe_conditional_nodes(report, *card));
  TRY(probe_programmatic_edges(report, *card));
  TRY(probe_wgmma(report, *card));
  TRY(probe_clear(settings, report, *card));
  if (processes_share_memory(settings)) return probe_sharing(settings, report, *card);
  report.unknown("memory: read-only mappings, and its return from killed processes",
                 "processes cannot share GPU memory here; see the stage kills");
  return {};
}

}  // namespace leasehold::gpu_check

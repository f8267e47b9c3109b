#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/checks/demo/check_groups.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::demo {
namespace {

using cli::bytes_text;

Check scrubbed(const Observation& seen, LeaseId lease, const std::string& whose) {
  std::vector<MemoryReading> before, after;
  bool held = false;
  for (const CheckedExtent& extent : seen.extents) {
    if (extent.lease != lease) continue;
    before.push_back(extent.before);
    after.push_back(extent.after);
    held = held || extent.still_held;
  }
  const MemoryReading was = sum(before);
  const MemoryReading is = sum(after);
  return {
      .promise = fmt::format("the memory of {} held data before, and is zero and free now", whose),
      .ok = was.nonzero_bytes > 0 && is.nonzero_bytes == 0 && is.allocated_bytes == 0 && !held,
      .seen = fmt::format("{} extents: {} bytes not zero before, {} after; {} allocated, {}",
                          after.size(), was.nonzero_bytes, is.nonzero_bytes,
                          bytes_text(is.allocated_bytes), held ? "still held" : "not held")};
}

Check conserved(const Observation& seen) {
  const auto off = std::ranges::find_if(seen.samples, [](const wire::StatusView& status) {
    return sum_of_states(status) != status.capacity_bytes;
  });
  const bool ok = !seen.samples.empty() && off == seen.samples.end();
  return {.promise = "no byte of the pool was lost or counted twice",
          .ok = ok,
          .seen = ok || seen.samples.empty()
                      ? fmt::format("counted {} times", seen.samples.size())
                      : fmt::format("{} of {} bytes", sum_of_states(*off), off->capacity_bytes)};
}

}  // namespace

std::uint64_t sum_of_states(const wire::StatusView& status) {
  return status.free_bytes + status.owned_bytes + status.draining_bytes + status.scrubbing_bytes +
         status.retained_bytes + status.quarantined_bytes + status.held_bytes;
}

void check_memory(const Observation& seen, std::vector<Check>& checks) {
  const auto& revoked = seen.result(seen.revoked).observed.leases;
  const auto& killed = seen.result(seen.killed).observed.leases;
  if (!revoked.empty() && seen.reads_memory)
    checks.push_back(scrubbed(seen, revoked[0], "B's first lease"));
  if (!killed.empty() && seen.reads_memory)
    checks.push_back(scrubbed(seen, killed[0], "C's lease"));
  checks.push_back(conserved(seen));
  checks.push_back(
      {.promise = "all memory is free at the end",
       .ok = seen.last.capacity_bytes > 0 && seen.last.free_bytes == seen.last.capacity_bytes,
       .seen = fmt::format("{} of {} free", bytes_text(seen.last.free_bytes),
                           bytes_text(seen.last.capacity_bytes))});
}

}  // namespace leasehold::demo

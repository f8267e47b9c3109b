#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/checks/demo/check_groups.hpp"
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
  std::string wrong;
  for (const wire::StatusView& status : seen.samples)
    if (wrong.empty()) wrong = not_conserved(status);
  return {.promise = "no byte of either pool was lost or counted twice",
          .ok = !seen.samples.empty() && wrong.empty(),
          .seen = wrong.empty() ? fmt::format("counted {} times", seen.samples.size()) : wrong};
}

std::uint64_t sum_of_states(const auto& pool) {
  return pool.free_bytes + pool.owned_bytes + pool.draining_bytes + pool.scrubbing_bytes +
         pool.retained_bytes + pool.quarantined_bytes;
}

}  // namespace

std::string not_conserved(const wire::StatusView& status) {
  const std::uint64_t kv = sum_of_states(status) + status.held_bytes;
  const std::uint64_t swap = sum_of_states(status.swap);
  if (kv != status.capacity_bytes)
    return fmt::format("KV: {} of {} bytes", kv, status.capacity_bytes);
  if (swap != status.swap.capacity_bytes)
    return fmt::format("swap: {} of {} bytes", swap, status.swap.capacity_bytes);
  return {};
}

bool is_all_free(const wire::StatusView& status) {
  return status.capacity_bytes > 0 &&
         status.free_bytes + status.held_bytes == status.capacity_bytes &&
         status.swap.free_bytes == status.swap.capacity_bytes;
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
       .ok = is_all_free(seen.last),
       .seen = fmt::format("{} of {} free, {} held for its worker, of swap {} of {}",
                           bytes_text(seen.last.free_bytes), bytes_text(seen.last.capacity_bytes),
                           bytes_text(seen.last.held_bytes), bytes_text(seen.last.swap.free_bytes),
                           bytes_text(seen.last.swap.capacity_bytes))});
}

}  // namespace leasehold::demo

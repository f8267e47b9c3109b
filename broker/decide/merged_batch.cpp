#include "broker/decide/merged_batch.hpp"

#include <ranges>
#include <unordered_set>

namespace leasehold::journal {
namespace {

/// Visits rows from the newest to the oldest.
class Replaced {
 public:
  /// True if a newer row of this object was visited.
  bool contains(const Row& row) {
    return std::visit([this](const auto& each) { return is_known(each); }, row);
  }

 private:
  bool is_known(const LeaseRow& row) { return !leases_.insert(row.id).second; }
  bool is_known(const LeaseGone& row) { return !leases_.insert(row.id).second; }
  bool is_known(const ExtentRow& row) { return !extents_.insert(row.id.value).second; }
  bool is_known(const ExtentGone& row) { return !extents_.insert(row.id.value).second; }
  bool is_known(const auto&) { return false; }

  std::unordered_set<LeaseId> leases_;
  std::unordered_set<std::uint64_t> extents_;
};

}  // namespace

Batch merged(const std::vector<const Batch*>& batches) {
  Batch all;
  Replaced replaced;
  std::vector<const Row*> kept;
  for (const Batch* batch : batches | std::views::reverse) {
    all.has_grants = all.has_grants || batch->has_grants;
    all.durable = all.durable || batch->durable;
    all.synced_later = all.synced_later || batch->synced_later;
    for (const Row& row : batch->rows | std::views::reverse)
      if (!replaced.contains(row)) kept.push_back(&row);
  }
  all.rows.reserve(kept.size());
  for (const Row* row : kept | std::views::reverse) all.rows.push_back(*row);
  return all;
}

}  // namespace leasehold::journal

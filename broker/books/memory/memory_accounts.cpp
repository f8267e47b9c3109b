#include "broker/books/memory/memory_accounts.hpp"

#include <algorithm>

namespace leasehold {
namespace {

bool is_same(const wire::MemoryGranted& one, const wire::MemoryGranted& other) {
  return one.pool == other.pool && one.adopted_from == other.adopted_from;
}

bool is_same(const wire::MemorySettled& one, const wire::MemorySettled& other) {
  return one.pool == other.pool && one.from == other.from && one.to == other.to &&
         one.adopted_by == other.adopted_by;
}

template <class Entry>
void add_entry(std::vector<Entry>& sums, const Entry& more) {
  const auto same =
      std::ranges::find_if(sums, [&more](const Entry& sum) { return is_same(sum, more); });
  if (same == sums.end()) return sums.push_back(more);
  same->extents += more.extents;
  same->bytes += more.bytes;
}

}  // namespace

void add_to(std::vector<wire::MemoryGranted>& sums, const wire::MemoryGranted& more) {
  add_entry(sums, more);
}

void add_to(std::vector<wire::MemorySettled>& sums, const wire::MemorySettled& more) {
  add_entry(sums, more);
}

void MemoryAccounts::lend(const ExtentAccount& extent, std::optional<LeaseId> adopted_from) {
  changes_.push_back({.lease = extent.lease,
                      .tenant = extent.tenant,
                      .pool = extent.pool,
                      .from = std::nullopt,
                      .other = adopted_from});
}

void MemoryAccounts::settle(ExtentAccount& extent, MemoryFate to,
                            std::optional<LeaseId> adopted_by) {
  if (extent.fate == to) return;
  changes_.push_back({.lease = extent.lease,
                      .tenant = extent.tenant,
                      .pool = extent.pool,
                      .from = extent.fate,
                      .to = to,
                      .other = adopted_by});
  count(extent, -1);
  extent.fate = to;
  count(extent, 1);
}

void MemoryAccounts::restore(const ExtentAccount& extent) {
  count(extent, 1);
}

MemoryAccounts::Unreturned MemoryAccounts::unreturned(LeaseId lease) const {
  const auto found = unreturned_.find(lease);
  return found == unreturned_.end() ? Unreturned{} : found->second;
}

void MemoryAccounts::count(const ExtentAccount& extent, int by) {
  if (extent.fate != MemoryFate::Held && extent.fate != MemoryFate::Quarantined) return;
  Unreturned& counts = unreturned_[extent.lease];
  (extent.fate == MemoryFate::Held ? counts.held : counts.quarantined) +=
      static_cast<std::uint32_t>(by);
  if (counts == Unreturned{}) unreturned_.erase(extent.lease);
}

}  // namespace leasehold

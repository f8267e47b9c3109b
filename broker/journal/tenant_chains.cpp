#include "broker/journal/tenant_chains.hpp"

#include <algorithm>
#include <utility>

#include "ipc/control/tokens/audit_chain.hpp"

namespace leasehold::journal {
namespace {

constexpr std::uint64_t wire::LeaseCounts::* kLeaseCounts[] = {
    &wire::LeaseCounts::granted, &wire::LeaseCounts::open, &wire::LeaseCounts::quarantined,
    &wire::LeaseCounts::held, &wire::LeaseCounts::erased};

}  // namespace

Result<TenantChains> TenantChains::create(Database& database) {
  TenantChains chains(TRY(database.prepare(
      "REPLACE INTO audit_tenant (tenant, records, hash, unix_ms, granted, open, quarantined, held,"
      " erased) VALUES (?,?,?,?,?,?,?,?,?)")));
  TRY(chains.load(database));
  return chains;
}

Result<void> TenantChains::load(Database& database) {
  Statement rows = TRY(
      database.prepare("SELECT tenant, records, hash, unix_ms, granted, open, quarantined, held,"
                       " erased FROM audit_tenant"));
  while (TRY(rows.next())) {
    wire::TenantHead head;
    rows.read(head.tenant, head.records, head.hash, head.unix_ms, head.leases.granted,
              head.leases.open, head.leases.quarantined, head.leases.held, head.leases.erased);
    store(std::move(head));
  }
  return {};
}

void TenantChains::store(wire::TenantHead head) {
  wire::TenantHead& stored = heads_[head.tenant];
  for (const auto count : kLeaseCounts)
    all_leases_.*count += head.leases.*count - stored.leases.*count;
  stored = std::move(head);
}

const wire::TenantHead* TenantChains::find(const std::string& tenant) const {
  const auto found = heads_.find(tenant);
  return found == heads_.end() ? nullptr : &found->second;
}

const wire::TenantHead* TenantChains::find_next(const std::string& tenant) const {
  const auto found = next_.find(tenant);
  return found == next_.end() ? find(tenant) : &found->second;
}

wire::TenantPlace TenantChains::next_place(const std::string& tenant) const {
  const wire::TenantHead* newest = find_next(tenant);
  if (newest == nullptr) return {.tenant_record = 1, .tenant_previous = audit::Link{}.hash};
  return {.tenant_record = newest->records + 1,
          .tenant_previous = newest->hash,
          .tenant_previous_unix_ms = newest->unix_ms};
}

void TenantChains::append(const std::string& tenant, const Appended& record) {
  const wire::TenantHead* newest = find_next(tenant);
  wire::TenantHead head = newest == nullptr ? wire::TenantHead{.tenant = tenant} : *newest;
  ++head.records;
  head.hash = record.hash;
  head.unix_ms = std::max(head.unix_ms, record.unix_ms);
  if (record.opens) {
    ++head.leases.granted;
    ++head.leases.open;
  }
  --wire::count_of(head.leases, record.before);
  ++wire::count_of(head.leases, record.after);
  next_.insert_or_assign(tenant, std::move(head));
}

Result<void> TenantChains::write() {
  for (const auto& [tenant, head] : next_) {
    const wire::LeaseCounts& leases = head.leases;
    TRY(put_.run(tenant, head.records, head.hash, head.unix_ms, leases.granted, leases.open,
                 leases.quarantined, leases.held, leases.erased));
  }
  return {};
}

void TenantChains::committed() {
  for (auto& [tenant, head] : std::exchange(next_, {})) store(std::move(head));
}

}  // namespace leasehold::journal

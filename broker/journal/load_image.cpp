#include "broker/journal/load_image.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ipc/control/tokens/api_key.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold::journal {
namespace {

std::unexpected<Error> corrupt(std::string_view what, std::uint64_t id) {
  return fail(Errc::FileCorrupt,
              fmt::format("the journal's {} {} has a value out of range", what, id));
}

/// Reads an enumerator from a column; false if the number is out of range.
template <class Enum>
bool read_enum(Statement& row, Enum& value, Enum last) {
  std::int64_t number = 0;
  row.read(number);
  value = static_cast<Enum>(number);
  return number >= 0 && number <= static_cast<std::int64_t>(last);
}

Result<void> load_meta(Database& database, Image& image) {
  Statement rows = TRY(database.prepare("SELECT name, value FROM meta"));
  while (TRY(rows.next())) {
    std::string name;
    rows.read(name);
    if (name == "boot_id") rows.read(image.boot_id);
    if (name == "generations_reserved") rows.read(image.reserved.generations);
    if (name == "attachments_reserved") rows.read(image.reserved.attachments);
    if (name == "extents_reserved") rows.read(image.reserved.extents);
    if (name == "regions_reserved") rows.read(image.reserved.regions);
    if (name == "extent_size_bytes") rows.read(image.extent_size_bytes);
  }
  return {};
}

Result<void> load_tenants(Database& database, Image& image) {
  Statement rows =
      TRY(database.prepare("SELECT tenant, policy, draining, reserved_bytes FROM tenant"));
  while (TRY(rows.next())) {
    std::string name;
    std::string policy;
    bool draining = false;
    std::uint64_t reserved_bytes = 0;
    rows.read(name, policy, draining, reserved_bytes);
    const auto json = wire::Json::parse(policy, nullptr, false);
    auto read = wire::TenantPolicy::from_json(json);
    if (!read || read->tenant.value != name) {
      return fail(Errc::FileCorrupt,
                  fmt::format("the journal's policy of tenant {} is damaged", name));
    }
    image.tenants[{name}] = {*std::move(read), draining, reserved_bytes};
  }
  return {};
}

Result<void> load_api_keys(Database& database, Image& image) {
  Statement rows = TRY(database.prepare("SELECT api_key, tenant, hash FROM api_key"));
  while (TRY(rows.next())) {
    ApiKeyRow row;
    rows.read(row.id, row.tenant, row.hash);
    const bool known = image.tenants.contains(row.tenant);
    if (!known || row.id != api_key_id(row.hash)) {
      return fail(Errc::FileCorrupt, fmt::format("the journal's key {} is damaged", row.id.value));
    }
    image.api_keys[row.id] = std::move(row);
  }
  return {};
}

Result<void> load_workers(Database& database, Image& image) {
  Statement rows = TRY(
      database.prepare("SELECT attachment, counter, name, pid, start_ticks, uid, model, address,"
                       " blocks_per_extent, untrusted, draining, state FROM worker"));
  while (TRY(rows.next())) {
    WorkerRow row;
    rows.read(row.id, row.index, row.name, row.process.pid, row.process.start_ticks, row.uid,
              row.model, row.address, row.blocks_per_extent, row.untrusted, row.draining);
    const bool state = read_enum(rows, row.state, WorkerState::Gone);
    if (!state || row.index.value >= kMaxWorkers) return corrupt("worker", row.id.value);
    image.workers[row.id] = std::move(row);
  }
  return {};
}

Result<void> load_leases(Database& database, Image& image) {
  Statement rows = TRY(database.prepare(
      "SELECT slot, generation, attachment, revoked_ns, fenced_ns, proof, tenant, holder_pid,"
      " holder_start_ticks, request_uid, request_id, request_digest, ttl_ns, deadline_ns,"
      " drain_deadline_ns, charged_blocks, region, replaces_slot, replaces_generation,"
      " replaced_by_slot, replaced_by_generation, last_deadline_ns, model, part, granted_ns, "
      "api_key, "
      "scope, state, "
      "reason, drain_reason"
      " FROM lease"));
  while (TRY(rows.next())) {
    LeaseRow row;
    rows.read(row.id.slot, row.id.generation, row.worker, row.revoked_ns, row.fenced_ns, row.proof,
              row.tenant, row.holder.pid, row.holder.start_ticks, row.request.uid,
              row.request.request_id, row.request.digest, row.ttl_ns, row.deadline_ns,
              row.drain_deadline_ns, row.charged_blocks, row.region, row.replaces.slot,
              row.replaces.generation, row.replaced_by.slot, row.replaced_by.generation,
              row.last_deadline_ns, row.model, row.part, row.granted_ns, row.api_key);
    const bool enums = read_enum(rows, row.scope, wire::LeaseScope::Shared) &&
                       read_enum(rows, row.state, LeaseState::Fenced) &&
                       read_enum(rows, row.reason, kLastRevokeReason) &&
                       read_enum(rows, row.drain_reason, kLastRevokeReason);
    const bool live = row.state == LeaseState::Live;
    if (!enums || row.drain_reason == RevokeReason::None || row.state == LeaseState::Closed ||
        live != (row.reason == RevokeReason::None) || row.id.generation == 0 ||
        !image.workers.contains(row.worker)) {
      return corrupt("lease in slot", row.id.slot);
    }
    image.leases[row.id] = std::move(row);
  }
  return {};
}

Result<void> load_extents(Database& database, Image& image) {
  Statement rows = TRY(database.prepare(
      "SELECT extent, slot, generation, size_bytes, device, inode, last_worker, last_worker_name,"
      " quarantined_ns, allocated_bytes, state, quarantine_reason, pool FROM extent"));
  while (TRY(rows.next())) {
    ExtentRow row;
    rows.read(row.id, row.lease.slot, row.lease.generation, row.size_bytes, row.device, row.inode,
              row.quarantine.worker, row.quarantine.worker_name, row.quarantine.since_ns,
              row.quarantine.allocated_bytes);
    bool state = read_enum(rows, row.state, ExtentState::Held);
    state = read_enum(rows, row.quarantine.why, QuarantineReason::NotReturned) && state;
    state = read_enum(rows, row.pool, MemoryPool::Swap) && state;
    const bool needs_lease =
        row.state != ExtentState::Quarantined && row.state != ExtentState::Held;
    const bool sized = row.size_bytes != 0 && row.size_bytes == image.extent_size_bytes;
    if (!state || row.state == ExtentState::Free || !sized ||
        (needs_lease && !image.leases.contains(row.lease))) {
      return corrupt("extent", row.id.value);
    }
    image.extents[row.id] = row;
  }
  return {};
}

Result<void> load_regions(Database& database, Image& image) {
  Statement rows = TRY(database.prepare(
      "SELECT region, size_bytes, loader, file_device, file_inode, file_size_bytes, file_mtime_ns,"
      " layout_digest, layout_version, worker_uid, last_worker, last_worker_name, quarantined_ns, "
      "allocated_bytes,"
      " state FROM region"));
  while (TRY(rows.next())) {
    RegionRow row;
    WeightsKey& key = row.key;
    rows.read(row.id, row.size_bytes, row.loader, key.file_device, key.file_inode,
              key.file_size_bytes, key.file_mtime_ns, key.layout_digest, key.layout_version,
              key.worker_uid, row.quarantine.worker, row.quarantine.worker_name,
              row.quarantine.since_ns, row.quarantine.allocated_bytes);
    if (!read_enum(rows, row.state, RegionState::Quarantined)) {
      return corrupt("region", row.id.value);
    }
    image.regions[row.id] = std::move(row);
  }
  return {};
}

Result<void> check_regions_of_leases(const Image& image) {
  for (const auto& [id, lease] : image.leases) {
    if (lease.region != RegionId{} && !image.regions.contains(lease.region)) {
      return corrupt("lease in slot", id.slot);
    }
  }
  return {};
}

}  // namespace

Result<Image> load_image(Database& database) {
  Image image;
  TRY(load_meta(database, image));
  TRY(load_tenants(database, image));
  TRY(load_api_keys(database, image));
  TRY(load_workers(database, image));
  TRY(load_leases(database, image));
  TRY(load_extents(database, image));
  TRY(load_regions(database, image));
  TRY(check_regions_of_leases(image));
  return image;
}

}  // namespace leasehold::journal

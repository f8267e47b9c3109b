/// Names the columns of each row once, as describe() does for messages. The tables are created,
/// written and read from these descriptions.
///
/// `key` names a column that identifies the object; the first one is the table's primary key. A
/// table without a key has one row. The column of an enumeration names the last valid enumerator.
///
/// Internal to tables.cpp.
#pragma once

#include <concepts>
#include <type_traits>

#include "broker/books/rows.hpp"

namespace leasehold::journal {

template <class T, class Row>
concept IsRow = std::same_as<std::remove_const_t<T>, Row>;

void describe(IsRow<HighWaterMarks> auto& row, auto& columns) {
  columns.column("generations", row.generations);
  columns.column("attachments", row.attachments);
  columns.column("extents", row.extents);
  columns.column("regions", row.regions);
}

void describe(IsRow<ExtentSizeRow> auto& row, auto& columns) {
  columns.column("extent_size_bytes", row.extent_size_bytes);
}

void describe(IsRow<BootRow> auto& row, auto& columns) {
  columns.column("boot_id", row.boot_id);
}

void describe(IsRow<DayUse> auto& use, auto& columns) {
  columns.column("day", use.day);
  columns.column("day_tokens", use.tokens);
}

void describe(IsRow<TenantRow> auto& row, auto& columns) {
  columns.key("tenant", row.policy.tenant);
  columns.column("policy", row.policy);
  columns.column("draining", row.draining);
  columns.column("reserved_bytes", row.reserved_bytes);
  columns.column("admitted_unix_ms", row.admitted_unix_ms);
  columns.column("part_incarnation", row.part.incarnation);
  columns.column("part_revision", row.part.revision);
  describe(row.use, columns);
}

void describe(IsRow<ApiKeyRow> auto& row, auto& columns) {
  columns.key("api_key", row.id);
  columns.column("tenant", row.tenant);
  columns.column("hash", row.hash);
  columns.column("name", row.name);
  columns.column("created_unix_ms", row.created_unix_ms);
  columns.column("expires_unix_ms", row.expires_unix_ms);
  columns.column("last_used_unix_ms", row.last_used_unix_ms);
  columns.column("max_concurrent", row.limits.max_concurrent);
  columns.column("tokens_per_minute", row.limits.rates.tokens_per_minute);
  columns.column("requests_per_minute", row.limits.rates.requests_per_minute);
  columns.column("tokens_per_day", row.limits.rates.tokens_per_day);
  describe(row.use, columns);
}

void describe(IsRow<AdapterRow> auto& row, auto& columns) {
  columns.key("adapter", row.id);
  columns.column("version", row.version);
  columns.column("tenant", row.tenant);
  columns.column("file", row.file);
  columns.column("pinned", row.pinned);
  columns.column("digest", row.digest);
  columns.column("removed", row.removed);
}

void describe(IsRow<WorkerRow> auto& row, auto& columns) {
  columns.key("attachment", row.id);
  columns.column("counter", row.index);
  columns.column("name", row.name);
  columns.column("pid", row.process.pid);
  columns.column("start_ticks", row.process.start_ticks);
  columns.column("uid", row.uid);
  columns.column("state", row.state, WorkerState::Gone);
  columns.column("model", row.model);
  columns.column("address", row.address);
  columns.column("blocks_per_extent", row.blocks_per_extent);
  columns.column("untrusted", row.untrusted);
  columns.column("draining", row.draining);
}

void describe(IsRow<QuarantineColumns> auto& quarantine, auto& columns) {
  columns.column("last_worker", quarantine.worker);
  columns.column("last_worker_name", quarantine.worker_name);
  columns.column("quarantined_ns", quarantine.since_ns);
  columns.column("allocated_bytes", quarantine.allocated_bytes);
  columns.column("quarantine_reason", quarantine.why, QuarantineReason::NotReturned);
}

void describe(IsRow<RegionRow> auto& row, auto& columns) {
  columns.key("region", row.id);
  columns.column("state", row.state, RegionState::Quarantined);
  columns.column("size_bytes", row.size_bytes);
  columns.column("loader", row.loader);
  columns.column("file_device", row.key.file_device);
  columns.column("file_inode", row.key.file_inode);
  columns.column("file_size_bytes", row.key.file_size_bytes);
  columns.column("file_mtime_ns", row.key.file_mtime_ns);
  columns.column("layout_digest", row.key.layout_digest);
  columns.column("layout_version", row.key.layout_version);
  columns.column("worker_uid", row.key.worker_uid);
  describe(row.quarantine, columns);
}

void describe(IsRow<LeaseRow> auto& row, auto& columns) {
  columns.key("slot", row.id.slot);
  columns.key("generation", row.id.generation);
  columns.column("attachment", row.worker);
  columns.column("scope", row.scope, wire::LeaseScope::Adapter);
  columns.column("state", row.state, LeaseState::Fenced);
  columns.column("reason", row.reason, kLastRevokeReason);
  columns.column("revoked_ns", row.revoked_ns);
  columns.column("fenced_ns", row.fenced_ns);
  columns.column("proof", row.proof);
  columns.column("tenant", row.tenant);
  columns.column("holder_pid", row.holder.pid);
  columns.column("holder_start_ticks", row.holder.start_ticks);
  columns.column("request_uid", row.request.uid);
  columns.column("request_id", row.request.request_id);
  columns.column("request_digest", row.request.digest);
  columns.column("ttl_ns", row.ttl_ns);
  columns.column("deadline_ns", row.deadline_ns);
  columns.column("drain_deadline_ns", row.drain_deadline_ns);
  columns.column("drain_reason", row.drain_reason, kLastRevokeReason);
  columns.column("last_deadline_ns", row.last_deadline_ns);
  columns.column("charged_blocks", row.charged_blocks);
  columns.column("region", row.region);
  columns.column("model", row.model);
  columns.column("part", row.part);
  columns.column("replaces_slot", row.replaces.slot);
  columns.column("replaces_generation", row.replaces.generation);
  columns.column("replaced_by_slot", row.replaced_by.slot);
  columns.column("replaced_by_generation", row.replaced_by.generation);
  columns.column("granted_ns", row.granted_ns);
  columns.column("api_key", row.api_key);
  columns.column("scavenger", row.scavenger);
  columns.column("adapter_version", row.adapter_version);
  columns.column("filled", row.filled);
}

void describe(IsRow<ExtentRow> auto& row, auto& columns) {
  columns.key("extent", row.id);
  columns.column("slot", row.lease.slot);
  columns.column("generation", row.lease.generation);
  columns.column("state", row.state, ExtentState::Held);
  columns.column("size_bytes", row.size_bytes);
  columns.column("device", row.device);
  columns.column("inode", row.inode);
  describe(row.quarantine, columns);
  columns.column("pool", row.pool, MemoryPool::Swap);
  columns.column("tenant", row.tenant);
}

}  // namespace leasehold::journal

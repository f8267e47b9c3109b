#include "broker/journal/row_writer.hpp"

#include <nlohmann/json.hpp>

namespace leasehold::journal {
namespace {

constexpr const char* kPutLease =
    "REPLACE INTO lease (slot, generation, attachment, scope, state, reason, revoked_ns, fenced_ns,"
    " proof, tenant, holder_pid, holder_start_ticks, request_uid, request_id, request_digest,"
    " ttl_ns, deadline_ns, drain_deadline_ns, charged_blocks, region, replaces_slot,"
    " replaces_generation, replaced_by_slot, replaced_by_generation, last_deadline_ns,"
    " model, part, granted_ns, drain_reason, api_key)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
constexpr const char* kPutWorker =
    "REPLACE INTO worker (attachment, counter, name, pid, start_ticks, uid, state, model, address,"
    " blocks_per_extent, untrusted, draining) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)";
constexpr const char* kPutExtent =
    "REPLACE INTO extent (extent, slot, generation, state, size_bytes, device, inode, last_worker,"
    " last_worker_name, quarantined_ns, allocated_bytes, quarantine_reason, pool)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)";
constexpr const char* kPutRegion =
    "REPLACE INTO region (region, state, size_bytes, loader, file_device, file_inode,"
    " file_size_bytes, file_mtime_ns, layout_digest, layout_version, worker_uid, last_worker,"
    " last_worker_name, quarantined_ns, allocated_bytes) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
constexpr const char* kPutOperatorAction =
    "INSERT INTO operator_action (at_boottime_ns, uid, action, object, reason, done) VALUES "
    "(?,?,?,?,?,?)";

}  // namespace

Result<RowWriter> RowWriter::create(Database& database, AuditLog& audit) {
  Statements to;
  to.meta = TRY(database.prepare("REPLACE INTO meta (name, value) VALUES (?,?)"));
  to.tenant =
      TRY(database.prepare("REPLACE INTO tenant (tenant, policy, draining, reserved_bytes)"
                           " VALUES (?,?,?,?)"));
  to.api_key = TRY(database.prepare("REPLACE INTO api_key (api_key, tenant, hash) VALUES (?,?,?)"));
  to.worker = TRY(database.prepare(kPutWorker));
  to.lease = TRY(database.prepare(kPutLease));
  to.extent = TRY(database.prepare(kPutExtent));
  to.region = TRY(database.prepare(kPutRegion));
  to.operator_action = TRY(database.prepare(kPutOperatorAction));
  to.tenant_gone = TRY(database.prepare("DELETE FROM tenant WHERE tenant=?"));
  to.api_key_gone = TRY(database.prepare("DELETE FROM api_key WHERE api_key=?"));
  to.worker_gone = TRY(database.prepare("DELETE FROM worker WHERE attachment=?"));
  to.lease_gone = TRY(database.prepare("DELETE FROM lease WHERE slot=? AND generation=?"));
  to.extent_gone = TRY(database.prepare("DELETE FROM extent WHERE extent=?"));
  to.region_gone = TRY(database.prepare("DELETE FROM region WHERE region=?"));
  return RowWriter(std::move(to), audit);
}

Result<void> RowWriter::write(const Row& row) {
  return std::visit([this](const auto& each) { return put(each); }, row);
}

Result<void> RowWriter::put(const TenantRow& row) {
  return to_.tenant.run(row.policy.tenant.value, row.policy.to_json().dump(),
                        static_cast<int>(row.draining), row.reserved_bytes);
}

Result<void> RowWriter::put(const ApiKeyRow& row) {
  return to_.api_key.run(row.id.value, row.tenant.value, row.hash);
}

Result<void> RowWriter::put(const WorkerRow& row) {
  return to_.worker.run(row.id, row.index, row.name, row.process.pid, row.process.start_ticks,
                        row.uid, static_cast<int>(row.state), row.model, row.address,
                        row.blocks_per_extent, static_cast<int>(row.untrusted),
                        static_cast<int>(row.draining));
}

Result<void> RowWriter::put(const LeaseRow& row) {
  return to_.lease.run(row.id.slot, row.id.generation, row.worker, static_cast<int>(row.scope),
                       static_cast<int>(row.state), static_cast<int>(row.reason), row.revoked_ns,
                       row.fenced_ns, row.proof, row.tenant.value, row.holder.pid,
                       row.holder.start_ticks, row.request.uid, row.request.request_id,
                       row.request.digest, row.ttl_ns, row.deadline_ns, row.drain_deadline_ns,
                       row.charged_blocks, row.region, row.replaces.slot, row.replaces.generation,
                       row.replaced_by.slot, row.replaced_by.generation, row.last_deadline_ns,
                       row.model, row.part, row.granted_ns, static_cast<int>(row.drain_reason),
                       row.api_key.value);
}

Result<void> RowWriter::put(const ExtentRow& row) {
  const QuarantineColumns& held = row.quarantine;
  return to_.extent.run(row.id, row.lease.slot, row.lease.generation, static_cast<int>(row.state),
                        row.size_bytes, row.device, row.inode, held.worker, held.worker_name,
                        held.since_ns, held.allocated_bytes, static_cast<int>(held.why),
                        static_cast<int>(row.pool));
}

Result<void> RowWriter::put(const RegionRow& row) {
  const WeightsKey& key = row.key;
  return to_.region.run(row.id, static_cast<int>(row.state), row.size_bytes, row.loader,
                        key.file_device, key.file_inode, key.file_size_bytes, key.file_mtime_ns,
                        key.layout_digest, key.layout_version, key.worker_uid,
                        row.quarantine.worker, row.quarantine.worker_name, row.quarantine.since_ns,
                        row.quarantine.allocated_bytes);
}

Result<void> RowWriter::put(const OperatorActionRow& row) {
  return to_.operator_action.run(row.at_boottime_ns, row.uid, row.action, row.object, row.reason,
                                 static_cast<int>(row.done));
}

Result<void> RowWriter::put(const WorkerGone& row) {
  TRY(audit_->forget(row.id));
  return to_.worker_gone.run(row.id);
}

Result<void> RowWriter::put(const Reserved& row) {
  TRY(to_.meta.run("generations_reserved", row.generations));
  TRY(to_.meta.run("attachments_reserved", row.attachments));
  TRY(to_.meta.run("extents_reserved", row.extents));
  return to_.meta.run("regions_reserved", row.regions);
}

Result<void> RowWriter::put(const ShapeRow& row) {
  return to_.meta.run("extent_size_bytes", row.extent_size_bytes);
}

Result<void> RowWriter::put(const BootRow& row) {
  return to_.meta.run("boot_id", row.boot_id);
}

}  // namespace leasehold::journal

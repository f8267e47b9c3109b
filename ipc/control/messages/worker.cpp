// Worker ↔ broker: attaching, weights, extents.
#include "ipc/control/messages/worker.hpp"

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"
#include "ipc/control/messages/rate_fields.hpp"
#include "ipc/control/messages/tenant_served.hpp"

namespace leasehold::wire {

std::string_view name(MemoryPool pool) {
  return pool == MemoryPool::Kv ? "kv" : "swap";
}

void describe(Is<WorkerAttach> auto& m, auto& fields) {
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("resume", m.resume);
  fields.field("protocol", m.protocol, Between<std::uint32_t>{1});
  fields.field("request_id", m.request_id);
}

void describe(Is<WorkerAttached> auto& m, auto& fields) {
  fields.field("worker", m.worker);
  fields.field("attachment", m.attachment);
  fields.field("slot_count", m.slot_count);
  fields.field("token_key", m.token_key, TextRule::HexKey);
  fields.field("resumed", m.resumed);
  fields.field("device", m.device, TextRule::NonEmpty);
  fields.field("device_uuid", m.device_uuid);
  fields.field("protocol", m.protocol, Between<std::uint32_t>{1});
}

void describe(Is<SpillOpened> auto& m, auto& fields) {
  fields.field("size_bytes", m.size_bytes);
}

void describe(Is<WeightsOpen> auto& m, auto& fields) {
  fields.field("model", m.model, TextRule::Label);
  fields.field("part", m.part, TextRule::Label);
  fields.field("file_device", m.file_device);
  fields.field("file_inode", m.file_inode);
  fields.field("file_size_bytes", m.file_size_bytes);
  fields.field("file_mtime_ns", m.file_mtime_ns);
  fields.field("layout_digest", m.layout_digest, TextRule::HexKey);
  fields.field("layout_version", m.layout_version);
  fields.field("size_bytes", m.size_bytes, kPositiveBytes);
  fields.field("request_id", m.request_id);
}

void describe(Is<WeightsOpened> auto& m, auto& fields) {
  fields.field("region", m.region);
  fields.field("lease", m.lease);
  fields.field("published", m.published);
}

void describe(Is<WeightsPublish> auto& m, auto& fields) {
  fields.field("region", m.region);
  fields.field("request_id", m.request_id);
}

void describe(Is<WorkerWeights> auto& m, auto& fields) {
  fields.field("missing", m.missing, TextRule::Sentence);
  fields.with_default("asleep", m.asleep, false);
}

void describe(Is<WeightsSleep> auto& m, auto& fields) {
  fields.field("why", m.why, TextRule::Sentence);
  fields.field("request_id", m.request_id);
}

void describe(Is<WeightsWake> auto& m, auto& fields) {
  fields.field("request_id", m.request_id);
}

void describe(Is<WorkerReady> auto& m, auto& fields) {
  fields.field("address", m.address, TextRule::SocketPath);
  fields.field("model", m.model, TextRule::Label);
  fields.with_default("aliases", m.aliases, std::vector<std::string>{},
                      MaxItems{WorkerReady::kMaxAliases}, TextRule::Label);
  fields.with_default("arithmetic", m.arithmetic, {}, Choice{kArithmetics});
  fields.field("kv_block_size_bytes", m.kv_block_size_bytes, kPositiveBytes);
  fields.field("max_extents", m.max_extents);
  fields.field("kv_identity", m.kv_identity, TextRule::Label);
  fields.field("text_identity", m.text_identity);
  fields.with_default("max_context", m.max_context, 0u);
  fields.with_default("can_sleep", m.can_sleep, false);
  fields.field("request_id", m.request_id);
}

void describe(Is<ExtentShape> auto& m, auto& fields) {
  fields.field("extent_size_bytes", m.extent_size_bytes, kPositiveBytes);
  fields.field("blocks_per_extent", m.blocks_per_extent, kBlocks);
}

void describe(Is<LeaseAttach, LeaseDrained, LeaseSettle, LeaseUnmap> auto& m, auto& fields) {
  fields.field("lease", m.lease);
}

void describe(Is<WorkerAdmission> auto& m, auto& fields) {
  fields.field("admits", m.admits);
  fields.with_default("incarnation", m.incarnation, std::uint64_t{0});
}

void describe(Is<WorkerAsleep> auto& m, auto& fields) {
  fields.field("asleep", m.asleep);
}

void describe(Is<LeaseDraining> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("successor", m.successor, TextRule::Name);
}

void describe(Is<LeaseRedeliver> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("extents", m.extents);
}

void describe(Is<EventReport> auto& m, auto& fields) {
  fields.field("events", m.events, TextRule::NonEmpty);
}

void describe(Is<LeaseGrant> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("tenant", m.tenant.value, TextRule::NameOrEmpty);
  fields.field("extent_size_bytes", m.extent_size_bytes, kPositiveBytes);
  fields.field("extents", m.extents);
  fields.with_default("pool", m.pool, {}, EnumCount{kMemoryPoolCount});
  fields.with_default("scope", m.scope, LeaseScope::Tenant, EnumCount{kLeaseScopeCount});
  fields.field("adopted_from", m.adopted_from);
  fields.field("api_key", m.api_key);
  fields.with_default("scavenger", m.scavenger, false);
  fields.field("adapter", m.adapter);
  fields.with_default("adapter_version", m.adapter_version, 0u);
}

Result<void> validate(const LeaseGrant& grant) {
  const bool has_tenant = !grant.tenant.value.empty();
  const bool has_adapter = grant.adapter.has_value();
  switch (grant.scope) {
    case LeaseScope::Tenant:
      if (has_tenant && !has_adapter) return {};
      break;
    case LeaseScope::Shared:
      if (!has_tenant && !has_adapter) return {};
      break;
    case LeaseScope::Adapter:
      if (has_adapter && grant.adapter_version > 0) return {};
      break;
    case LeaseScope::Engine:
      break;
  }
  return fail(Errc::BadRequest,
              "expected 'scope' to be tenant with a 'tenant', shared without, or adapter with an "
              "'adapter' and its 'adapter_version'");
}

void describe(Is<PrefixFill> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("text", m.text);
  fields.field("adapter", m.adapter);
  fields.with_default("adapter_version", m.adapter_version, 0u);
}

Result<void> validate(const PrefixFill& fill) {
  if (fill.adapter.has_value() == (fill.adapter_version > 0)) return {};
  return fail(Errc::BadRequest, "expected 'adapter' with its 'adapter_version', or neither");
}

void describe(Is<PrefixFilled> auto& m, auto& fields) {
  fields.field("tokens", m.tokens);
  fields.field("blocks", m.blocks);
}

void describe(Is<KeyQuota> auto& m, auto& fields) {
  fields.field("key", m.key);
  fields.field("max_concurrent", m.max_concurrent, kConcurrent);
  kRateParts(m.rates, fields);
}

void describe(Is<TenantQuota> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("revision", m.revision);
  fields.field("max_concurrent", m.max_concurrent, kConcurrentOrZero);
  fields.field("max_blocks", m.max_blocks, kBlocksOrZero);
  fields.field("weight", m.weight, kWeight);
  fields.field("divided", m.divided);
  fields.with_default("of_cell", m.of_cell, false);
  kRateParts(m.rates, fields);
  fields.field("request_blocks", m.request_blocks, kBlocksOrZero);
  fields.with_default("keys", m.keys, {}, MaxItems{kMaxKeysPerTenant});
}

void describe(Is<TenantUsage> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("revision", m.revision);
  fields.field("running", m.running, kConcurrentOrZero);
  fields.field("waiting", m.waiting, kConcurrentOrZero);
  fields.field("admitted", m.admitted);
}

void TenantServed::add(const TenantServed& later) {
  tokens += later.tokens;
  hit_blocks += later.hit_blocks;
  hit_tokens += later.hit_tokens;
  evicted_blocks += later.evicted_blocks;
  preemptions += later.preemptions;
  cross_tenant_hits += later.cross_tenant_hits;
  cached_blocks = later.cached_blocks;
  shared_hit_blocks += later.shared_hit_blocks;
}

void describe(Is<LeaseReclaim> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("count", m.count, kExtents);
  fields.with_default("pool", m.pool, {}, EnumCount{kMemoryPoolCount});
}

void describe(Is<ExtentsReclaimed> auto& m, auto& fields) {
  fields.field("extents", m.extents);
}

template struct Message<WorkerAttach>;
template struct Message<WorkerAttached>;
template struct Message<SpillOpened>;
template struct Message<WeightsOpen>;
template struct Message<WeightsOpened>;
template struct Message<WeightsPublish>;
template struct Message<WorkerReady>;
template struct Message<ExtentShape>;
template struct Message<LeaseAttach>;
template struct Message<LeaseRedeliver>;
template struct Message<LeaseDrained>;
template struct Message<WorkerWeights>;
template struct Message<WeightsSleep>;
template struct Message<WeightsWake>;
template struct Message<EventReport>;
template struct Message<LeaseGrant>;
template struct Message<PrefixFill>;
template struct Message<PrefixFilled>;
template struct Message<WorkerAdmission>;
template struct Message<WorkerAsleep>;
template struct Message<LeaseDraining>;
template struct Message<TenantQuota>;
template struct Message<TenantUsage>;
template struct Message<TenantServed>;
template struct Message<LeaseSettle>;
template struct Message<LeaseUnmap>;
template struct Message<LeaseReclaim>;
template struct Message<ExtentsReclaimed>;

}  // namespace leasehold::wire

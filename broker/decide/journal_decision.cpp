#include "broker/decide/journal_decision.hpp"

#include <algorithm>
#include <iterator>

#include "broker/decide/memory/memory_rows.hpp"

namespace leasehold {
namespace {

/// If a decision revokes more leases than this, their audit records are written after all other
/// work, because their fence proofs wait for the loop.
constexpr std::size_t kMaxRevocationsInBatch = 64;
constexpr std::uint64_t kReservedIdBatch = 1024;
// larger, because every grant takes extent ids
constexpr std::uint64_t kReservedExtentIdBatch = 65'536;

template <class Id>
std::vector<Id> without_duplicates(std::vector<Id>& touched) {
  std::ranges::sort(touched);
  const auto repeated = std::ranges::unique(touched);
  touched.erase(repeated.begin(), repeated.end());
  return std::move(touched);
}

journal::LeaseRow row_of(const LeaseRecord& record) {
  journal::LeaseRow row{.id = record.id(),
                        .worker = record.worker(),
                        .scope = record.scope,
                        .state = record.state(),
                        .reason = reason_of(record.lease),
                        .tenant = record.tenant,
                        .holder = record.holder_process,
                        .request = record.request,
                        .ttl_ns = record.ttl.count(),
                        .deadline_ns = record.deadline.boottime_ns,
                        .drain_deadline_ns = record.drain_deadline.boottime_ns,
                        .drain_reason = record.drain_reason,
                        .last_deadline_ns = record.last_deadline.boottime_ns,
                        .charged_blocks = record.charged_blocks,
                        .region = record.region,
                        .model = record.model,
                        .part = record.part,
                        .replaces = record.replaces.value_or(LeaseId{}),
                        .replaced_by = record.replaced_by.value_or(LeaseId{}),
                        .granted_ns = record.granted_at.boottime_ns,
                        .api_key = record.api_key,
                        .scavenger = record.scavenger,
                        .adapter_version = record.adapter_version,
                        .filled = record.filled};
  if (!record.is(LeaseState::Live)) row.revoked_ns = record.revoked_at().boottime_ns;
  if (const auto* fenced = std::get_if<Lease<Fenced>>(&record.lease)) {
    row.fenced_ns = fenced->state().at.boottime_ns;
    row.proof = name(fenced->state().proof);
  }
  return row;
}

journal::TenantRow row_of(const Tenant& tenant) {
  return {.policy = tenant.policy,
          .draining = tenant.draining,
          .reserved_bytes = tenant.reserved_bytes,
          .admitted_unix_ms = tenant.admitted_unix_ms,
          .use = tenant.use,
          .part = tenant.part};
}

journal::QuarantineColumns columns_of(const std::optional<Quarantine>& quarantine) {
  if (!quarantine) return {};
  return {.worker = quarantine->worker,
          .worker_name = quarantine->worker_name,
          .since_ns = quarantine->since.boottime_ns,
          .allocated_bytes = quarantine->allocated_bytes,
          .why = quarantine->why};
}

/// The row from which the next broker restores the extent. An extent that is held or being released
/// is written as Held: it belongs to its worker until that worker exits.
journal::ExtentRow row_of(const State& state, ExtentId id, const ExtentRecord& extent) {
  journal::ExtentRow row{.id = id,
                         .lease = extent.lease,
                         .state = extent.state,
                         .size_bytes = state.extents.extent_size_bytes(),
                         .quarantine = columns_of(extent.quarantine),
                         .pool = extent.pool,
                         .tenant = extent.tenant};
  const bool released =
      extent.state == ExtentState::Scrubbing && state.leases.find_open(extent.lease) == nullptr;
  if (extent.state != ExtentState::Held && !released) return row;
  row.state = ExtentState::Held;
  row.quarantine.worker = extent.lent_to;
  return row;
}

/// True if the extent's state follows from its lease's state, so that it needs no row.
bool is_implied(const State& state, const ExtentRecord& extent) {
  if (extent.state == ExtentState::Draining || extent.state == ExtentState::Retained) return true;
  if (extent.state != ExtentState::Scrubbing) return false;
  const LeaseRecord* lease = state.leases.find_open(extent.lease);
  return lease != nullptr && lease->is(LeaseState::Fenced);
}

/// Raises each high-water mark that the decision exceeded. True if one was raised.
bool reserve_ids(State& state) {
  const auto raise = [](std::uint64_t& mark, std::uint64_t used, std::uint64_t at_once) {
    if (used <= mark) return false;
    mark = (used + at_once - 1) / at_once * at_once;
    return true;
  };
  journal::HighWaterMarks& marks = state.reserved;
  const bool generations =
      raise(marks.generations, state.leases.highest_generation(), kReservedIdBatch);
  const bool attachments = raise(marks.attachments, state.workers.highest_id(), kReservedIdBatch);
  const bool extents = raise(marks.extents, state.extents.highest_id(), kReservedExtentIdBatch);
  const bool regions = raise(marks.regions, state.weights.highest_id(), kReservedIdBatch);
  return generations || attachments || extents || regions;
}

class RowCollector {
 public:
  explicit RowCollector(Decision& decision) : state_(decision.state) {
    Touched& touched = decision.touched;
    batch_.durable = touched.durable;
    if (reserve_ids(decision.state)) {
      batch_.rows.push_back(state_.reserved);
      batch_.durable = true;
    }
    if (touched.shape) {
      batch_.rows.push_back(journal::ExtentSizeRow{state_.extents.extent_size_bytes()});
    }
    for (const TenantId& id : touched.tenants) {
      const Tenant* tenant = state_.tenants.find(id);
      if (tenant != nullptr) batch_.rows.push_back(row_of(*tenant));
      if (tenant == nullptr) batch_.rows.push_back(journal::TenantGone{id});
    }
    for (const TenantId& id : without_duplicates(touched.counted)) {
      const Tenant* tenant = state_.tenants.find(id);
      if (tenant != nullptr) batch_.rows.push_back(row_of(*tenant));
    }
    for (const ApiKeyId& id : without_duplicates(touched.api_keys)) {
      const journal::ApiKeyRow* key = state_.api_keys.find(id);
      if (key != nullptr) batch_.rows.emplace_back(*key);
      if (key == nullptr) batch_.rows.push_back(journal::ApiKeyGone{id});
    }
    for (const AdapterName& name : without_duplicates(touched.adapters))
      batch_.rows.emplace_back(state_.adapters.all().at(name));
    for (const AttachmentId id : without_duplicates(touched.workers)) add(id);
    for (const LeaseId id : without_duplicates(touched.leases)) {
      decision.state.leases.enter_in_index(id);
      add(id);
    }
    for (const ExtentId id : without_duplicates(touched.extents)) add(id);
    for (const RegionId id : without_duplicates(touched.regions)) add(id);
    std::ranges::move(touched.usage_records, std::back_inserter(batch_.rows));
  }

  journal::Batch take() { return std::move(batch_); }

 private:
  void add(AttachmentId id) {
    const Worker* worker = state_.workers.find(id);
    const bool gone = worker == nullptr || worker->state == WorkerState::Gone;
    if (gone && state_.leases.index().of(id).open.empty()) {
      batch_.rows.push_back(journal::WorkerGone{id});
      return;
    }
    batch_.rows.push_back(journal::WorkerRow{.id = id,
                                             .index = worker->index,
                                             .name = worker->name,
                                             .process = {worker->pid, worker->start_ticks},
                                             .uid = worker->uid,
                                             .state = worker->state,
                                             .model = worker->model,
                                             .address = worker->address,
                                             .blocks_per_extent = worker->blocks_per_extent,
                                             .untrusted = worker->untrusted,
                                             .draining = worker->draining});
  }

  void add(LeaseId id) {
    const LeaseRecord* record = state_.leases.find_open(id);
    if (record == nullptr) {
      batch_.rows.push_back(journal::LeaseGone{id});
      return;
    }
    batch_.rows.push_back(row_of(*record));
  }

  void add(ExtentId id) {
    const ExtentRecord* extent = state_.extents.find(id);
    if (extent == nullptr) {
      batch_.rows.push_back(journal::ExtentGone{id});
    } else if (!is_implied(state_, *extent)) {
      batch_.rows.push_back(row_of(state_, id, *extent));
    }
  }

  void add(RegionId id) {
    const auto found = state_.weights.regions().find(id);
    if (found == state_.weights.regions().end()) {
      batch_.rows.push_back(journal::RegionGone{id});
      return;
    }
    const WeightsRegion& region = found->second;
    batch_.rows.push_back(journal::RegionRow{.id = id,
                                             .key = region.key,
                                             .size_bytes = region.size_bytes,
                                             .state = region.state,
                                             .loader = region.loader,
                                             .quarantine = columns_of(region.quarantine)});
  }

  const State& state_;
  journal::Batch batch_;
};

bool stores_state(const Effect& effect, LeaseState state) {
  const auto* stored = std::get_if<effect::StoreWords>(&effect);
  return stored != nullptr && stored->changes.front().to == state;
}

bool lends(const Effect& effect) {
  return std::holds_alternative<effect::PublishGrant>(effect) ||
         std::holds_alternative<effect::SendGrant>(effect);
}

/// The effects that create the memory of the extents that the decision took.
std::vector<Effect> creations(Decision& decision) {
  std::vector<Effect> created;
  const auto create = [&](std::vector<ExtentId>& extents, bool may_stay_idle) {
    if (extents.empty()) return;
    created.emplace_back(
        effect::CreateExtents{.extents = std::move(extents),
                              .size_bytes = decision.state.extents.extent_size_bytes(),
                              .may_stay_idle = may_stay_idle});
  };
  create(decision.touched.taken, false);
  create(decision.touched.taken_idle, true);
  return created;
}

bool must_follow(const Effect& effect, bool revokes) {
  if (lends(effect) || stores_state(effect, LeaseState::Fenced)) return true;
  if (std::holds_alternative<effect::ReplyWhenJournaled>(effect)) return true;
  return !revokes && std::holds_alternative<effect::Reply>(effect);
}

}  // namespace

void journal_decision(Decision& decision, std::uint64_t extent_size_bytes) {
  journal::Batch batch = RowCollector(decision).take();
  std::ranges::move(memory_rows(decision, extent_size_bytes), std::back_inserter(batch.rows));
  std::vector<Effect>& effects = decision.effects();
  const bool revokes = std::ranges::any_of(
      effects, [](const Effect& each) { return stores_state(each, LeaseState::Revoked); });
  auto& operator_actions = decision.touched.operator_actions;
  std::vector<journal::Row> later;
  auto& revocations = decision.touched.revocations;
  const bool are_many = revocations.size() > kMaxRevocationsInBatch;
  std::ranges::move(revocations, std::back_inserter(are_many ? later : batch.rows));
  const bool acts = !operator_actions.empty();
  std::ranges::move(operator_actions, std::back_inserter(revokes ? later : batch.rows));
  if (acts && !revokes) batch.durable = true;
  if (!batch.rows.empty()) {
    batch.has_grants = std::ranges::any_of(effects, lends);
    const auto position = std::ranges::find_if(
        effects, [revokes](const Effect& each) { return must_follow(each, revokes); });
    std::vector<Effect> written = creations(decision);
    written.emplace_back(effect::Journal{.batch = std::move(batch)});
    effects.insert(position, std::make_move_iterator(written.begin()),
                   std::make_move_iterator(written.end()));
  }
  if (later.empty()) return;
  effects.emplace_back(effect::Journal{.batch = {.rows = std::move(later), .synced_later = acts},
                                       .when_idle = true});
}

}  // namespace leasehold

#include "broker/recovery/restore.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/lease/grant.hpp"
#include "broker/recovery/recovery_observer.hpp"

namespace leasehold {
namespace {

using journal::ExtentRow;
using journal::LeaseRow;
using journal::RegionRow;
using journal::WorkerRow;

std::uint32_t slots_needed(const journal::Image& image, const Facts& facts,
                           const BrokerConfig& config) {
  if (facts.table) return static_cast<std::uint32_t>(facts.table->size());
  std::uint32_t needed = config.slot_count;
  for (const auto& [id, row] : image.leases) needed = std::max(needed, id.slot + 1);
  return needed;
}

AnyLease lease_of(const LeaseRow& row) {
  Lease<Live> live = open_lease(row.id, row.worker);
  if (row.state == LeaseState::Live) return live;
  Lease<Revoked> revoked = revoke(std::move(live), row.reason, {row.revoked_ns});
  if (row.state == LeaseState::Revoked) return revoked;
  return fence(std::move(revoked), RecoveryObserver::recorded(row.proof, row.id, row.worker),
               {row.fenced_ns});
}

/// Merges a row with the word of the same generation: the later state applies.
LeaseRow merged(LeaseRow row, const KeptSlot& slot) {
  row.deadline_ns = slot.deadline.boottime_ns;
  row.drain_deadline_ns = slot.drain_deadline.boottime_ns;
  if (slot.word.state() <= row.state) return row;
  if (row.state == LeaseState::Live) {
    row.reason = slot.word.reason();
    row.revoked_ns = slot.word_stored_at.boottime_ns;
  }
  row.state = slot.word.state();
  return row;
}

/// False for a word that no broker stores, because other processes could have written to the table.
bool is_sane(LeaseWord word) {
  const bool live = word.state() == LeaseState::Live;
  return word.state() <= LeaseState::Fenced && live == (word.reason() == RevokeReason::None) &&
         word.reason() <= kLastRevokeReason;
}

ExtentState state_of(const ExtentRow& row, LeaseState lease) {
  if (row.state != ExtentState::Owned || lease == LeaseState::Live) return row.state;
  return lease == LeaseState::Revoked ? ExtentState::Draining : ExtentState::Scrubbing;
}

/// The account of the extent in the audit chain, as the row has it.
ExtentAccount account_of(const ExtentRow& row) {
  ExtentAccount account{.lease = row.lease, .tenant = row.tenant, .pool = row.pool};
  if (row.state == ExtentState::Held) account.fate = MemoryFate::Held;
  if (row.state == ExtentState::Quarantined) account.fate = MemoryFate::Quarantined;
  return account;
}

/// Returns nothing if the memory is not quarantined, or if its quarantine was journaled without
/// details.
std::optional<Quarantine> quarantine_of(const journal::QuarantineColumns& columns) {
  if (columns == journal::QuarantineColumns{}) return std::nullopt;
  return Quarantine{.worker = columns.worker,
                    .worker_name = columns.worker_name,
                    .since = {columns.since_ns},
                    .allocated_bytes = columns.allocated_bytes,
                    .why = columns.why};
}

class Restorer {
 public:
  Restorer(const journal::Image& image, const Facts& facts, const BrokerConfig& config,
           bool machine_restarted)
      : image_(image),
        facts_(facts),
        machine_restarted_(machine_restarted),
        out_{.state = State(config)} {}

  Result<Restored> run() {
    TRY(check_room());
    restore_reserved_ids();
    for (const auto& [id, row] : image_.tenants) {
      TRY(out_.state.tenants.admit(row.policy, facts_.now));
      out_.state.tenants.set_draining(id, row.draining);
      out_.state.tenants.find(id)->reserved_bytes = row.reserved_bytes;
      out_.state.tenants.find(id)->admitted_unix_ms = row.admitted_unix_ms;
      out_.state.tenants.find(id)->use = row.use;
      restore_part(row);
    }
    for (const auto& [id, row] : image_.api_keys) TRY(out_.state.api_keys.add(row, facts_.now));
    for (const auto& [id, row] : image_.adapters) out_.state.adapters.restore(row);
    for (const auto& [id, row] : image_.workers) restore(row);
    for (const auto& [id, row] : image_.leases) restore(row);
    restore_extents();
    for (const auto& [id, row] : image_.regions) restore(row);
    restore_answers();
    fence_unjournaled_words();
    return std::move(out_);
  }

 private:
  /// What the tenant gained before the restart is not known, and its cell may have it elsewhere.
  void restore_part(const journal::TenantRow& row) {
    Tenant& tenant = *out_.state.tenants.find(row.policy.tenant);
    tenant.part = row.part;
    if (row.policy.cell) tenant.idle = IdleTime::since(facts_.now);
  }

  Result<void> check_room(MemoryPool pool) const {
    const auto extents = std::ranges::count_if(
        image_.extents, [pool](const auto& entry) { return entry.second.pool == pool; });
    const std::uint64_t held = static_cast<std::uint64_t>(extents) * image_.extent_size_bytes;
    if (held <= out_.state.extents.capacity_bytes(pool)) return {};
    return fail(Errc::BadRequest,
                fmt::format("leases from before the restart hold {} bytes; start with at least "
                            "this {} until they end",
                            held, pool == MemoryPool::Kv ? "--capacity" : "--swap-capacity"));
  }

  Result<void> check_room() const {
    if (machine_restarted_) return {};
    for (const MemoryPool pool : kMemoryPools) TRY(check_room(pool));
    return {};
  }

  void restore_reserved_ids() {
    State& state = out_.state;
    state.reserved = image_.reserved;
    state.leases.note_reserved(image_.reserved.generations);
    state.workers.start_above(image_.reserved.attachments);
    state.extents.start_above(image_.reserved.extents);
    state.weights.start_above(image_.reserved.regions);
    for (std::uint32_t slot = 0; slot < state.leases.slot_count(); ++slot)
      state.leases.start_above(slot, used_generation(slot));
  }

  /// Generations of the slot up to this one may have been used. A zero word says only that the slot
  /// was not used since this table was created; an earlier table may have used other generations.
  std::uint64_t used_generation(std::uint32_t slot) const {
    const std::uint64_t stored = facts_.table ? (*facts_.table)[slot].word.generation() : 0;
    return stored == 0 ? image_.reserved.generations : stored;
  }

  void restore(const WorkerRow& row) {
    out_.state.workers.restore(
        {.id = row.id,
         .index = row.index,
         .name = row.name,
         .pid = row.process.pid,
         .start_ticks = row.process.start_ticks,
         .uid = row.uid,
         .token_key = derive_worker_key(out_.state.config.token_key, row.index, row.id.value),
         .state = WorkerState::Lost,
         .socket_open = false,
         .untrusted = row.untrusted,
         .draining = row.draining,
         .segment_lost = !facts_.table || !facts_.kept_workers.contains(row.id),
         .model = row.model,
         .address = row.address,
         .blocks_per_extent = row.blocks_per_extent});
  }

  void restore(const LeaseRow& written) {
    LeaseRow row = written;
    if (machine_restarted_) row.revoked_ns = row.fenced_ns = 0;  // times of another boot
    bool word_older = true;
    if (facts_.table) {
      if (row.id.slot >= facts_.table->size()) return out_.stale_leases.push_back(row.id);
      const KeptSlot& slot = (*facts_.table)[row.id.slot];
      if (slot.word.generation() > row.id.generation) return out_.stale_leases.push_back(row.id);
      word_older = slot.word.generation() < row.id.generation || !is_sane(slot.word);
      if (!word_older && slot.word.state() < row.state) out_.stale_words.push_back(row.id);
      if (!word_older) row = merged(std::move(row), slot);
      if (word_older) out_.never_sent.push_back(row.id);
    }
    if (word_older) out_.words.push_back({row.id, row.state, row.reason});
    const bool never_sent = facts_.table && word_older;
    out_.state.leases.restore(record_of(row, !never_sent));
  }

  LeaseRecord record_of(const LeaseRow& row, bool sent_to_worker) const {
    const auto some = [](LeaseId id) {
      return id.generation == 0 ? std::nullopt : std::optional(id);
    };
    return LeaseRecord{.lease = lease_of(row),
                       .scope = row.scope,
                       .tenant = row.tenant,
                       .api_key = row.api_key,
                       .scavenger = row.scavenger,
                       .holder_uid = row.request.uid,
                       .holder_process = row.holder,
                       .request = row.request,
                       .ttl = Duration(row.ttl_ns),
                       .charged_blocks = row.charged_blocks,
                       .acquired = true,
                       .replaced_by = some(row.replaced_by),
                       .replaces = some(row.replaces),
                       .region = machine_restarted_ ? RegionId{} : row.region,
                       .model = row.model,
                       .part = row.part,
                       .adapter_version = row.adapter_version,
                       .filled = row.filled,
                       .deadline = {row.deadline_ns},
                       .wanted_deadline = {row.deadline_ns},
                       .last_deadline = {row.last_deadline_ns},
                       .drain_deadline = {row.drain_deadline_ns},
                       .drain_reason = row.drain_reason,
                       .sent_to_worker = sent_to_worker,
                       .may_be_mapping = sent_to_worker,
                       .granted_at = {row.granted_ns}};
  }

  void restore_extents() {
    State& state = out_.state;
    const bool is_size_in_use =
        !machine_restarted_ && (!image_.extents.empty() || !image_.workers.empty());
    if (is_size_in_use && image_.extent_size_bytes != 0) {
      state.extents.restore_size(image_.extent_size_bytes);
    }
    for (const auto& [id, row] : image_.extents) {
      const LeaseRecord* lease = state.leases.find_open(row.lease);
      if (!machine_restarted_ && row.state == ExtentState::Held) {
        restore_held(row);
        continue;
      }
      const bool quarantined = row.state == ExtentState::Quarantined;
      if (machine_restarted_ || (lease == nullptr && !quarantined)) {
        drop(row);
        continue;
      }
      ExtentRecord extent{account_of(row)};
      extent.state = quarantined ? row.state : state_of(row, lease->state());
      extent.quarantine = quarantine_of(row.quarantine);
      extent.unavailable = true;
      state.extents.restore(id, extent);
      if (!quarantined) state.leases.at(row.lease).extents.push_back(id);
    }
  }

  /// Restores device memory that is held for a worker. It counts as used until that worker exits,
  /// and no other worker gets it.
  void restore_held(const ExtentRow& row) {
    if (out_.state.workers.find(row.quarantine.worker) == nullptr) return drop(row);
    ExtentRecord extent{account_of(row)};
    extent.state = ExtentState::Held;
    extent.unavailable = true;
    extent.lent_to = row.quarantine.worker;
    out_.state.extents.restore(row.id, extent);
  }

  /// The memory does not exist any more, or no process has it.
  void drop(const ExtentRow& row) {
    out_.dropped_extents.push_back(row.id);
    ExtentAccount account = account_of(row);
    out_.state.extents.accounts().restore(account);
    out_.state.extents.accounts().settle(account, MemoryFate::FreedUnchecked);
  }

  void restore(const RegionRow& row) {
    std::vector<LeaseId> users;
    out_.state.leases.for_each_open([&](const LeaseRecord& record) {
      if (record.region == row.id) users.push_back(record.id());
    });
    const bool complete = row.state == RegionState::Published || row.state == RegionState::Retained;
    const bool kept = complete && facts_.kept_regions.contains(row.id);
    const bool held = kept || row.state == RegionState::Quarantined || !users.empty();
    if (machine_restarted_ || !held) return out_.dropped_regions.push_back(row.id);
    WeightsRegion& region = out_.state.weights.restore({.id = row.id,
                                                        .key = row.key,
                                                        .size_bytes = row.size_bytes,
                                                        .state = RegionState::Scrubbing,
                                                        .loader = row.loader});
    region.users = static_cast<std::uint32_t>(users.size());
    if (row.state == RegionState::Quarantined) {
      region.state = RegionState::Quarantined;
      region.unavailable = true;
      region.quarantine = quarantine_of(row.quarantine);
    }
    if (kept) region.state = RegionState::Published;
    if (kept && users.empty()) out_.state.weights.retain(region);
    if (!kept) std::ranges::copy(users, std::back_inserter(out_.region_lost));
  }

  /// Restores the answers of acquires, so that a repeated acquire finds its lease.
  void restore_answers() {
    State& state = out_.state;
    state.leases.for_each_open([&](const LeaseRecord& record) {
      if (record.request.request_id.empty() || record.scope != wire::LeaseScope::Tenant) return;
      state.requests.restore(record.request, acquired_answer(state, record));
    });
  }

  /// True if the journal's lease of the slot is newer than the table's, which was fenced in the
  /// same transaction: its word replaces the older one.
  bool has_later_word(LeaseId id) const {
    return std::ranges::any_of(out_.words, [id](const Recovered::Word& each) {
      return each.lease.slot == id.slot && each.lease.generation > id.generation;
    });
  }

  /// Fences table words whose grant was published but neither journaled nor answered.
  void fence_unjournaled_words() {
    if (!facts_.table) return;
    for (std::uint32_t slot = 0; slot < facts_.table->size(); ++slot) {
      const LeaseWord word = (*facts_.table)[slot].word;
      const bool open = word.state() == LeaseState::Live || word.state() == LeaseState::Revoked;
      const LeaseId id{slot, word.generation()};
      if (!open || out_.state.leases.find_open(id) != nullptr || has_later_word(id)) continue;
      out_.words.push_back({id, LeaseState::Fenced, RevokeReason::Released});
    }
  }

  const journal::Image& image_;
  const Facts& facts_;
  bool machine_restarted_;
  Restored out_;
};

}  // namespace

Result<Restored> restore(const journal::Image& image, const Facts& facts, BrokerConfig config,
                         bool machine_restarted) {
  config.slot_count = slots_needed(image, facts, config);
  return Restorer(image, facts, config, machine_restarted).run();
}

}  // namespace leasehold

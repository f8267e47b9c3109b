#include "broker/recovery/recovery.hpp"

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/journal_decision.hpp"
#include "broker/decide/lease/fence.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/return_memory.hpp"
#include "broker/decide/tenant/publish.hpp"
#include "broker/recovery/recovery_observer.hpp"
#include "broker/recovery/restore.hpp"

namespace leasehold {
namespace {

template <class Predicate>
void revoke_where(Decision& decision, RevokeReason reason, Predicate matches) {
  revoke_leases(decision, open_leases_where(decision.state, matches), reason);
}

/// Fences every lease: after a reboot no earlier process, memory or mapping exists.
void fence_after_reboot(Decision& decision, MachineRestart proof) {
  const std::vector<LeaseId> leases = decision.state.leases.open_leases();
  for (const auto& [id, worker] : decision.state.workers.all()) {
    decision.state.workers.find(id)->state = WorkerState::Gone;
    decision.touch(id);
  }
  revoke_leases(decision, leases, RevokeReason::MachineRestarted);
  std::vector<ProvenLease> proven;
  std::vector<LeaseId> fenced_before;
  for (const LeaseId id : leases) {
    if (decision.state.leases.at(id).is(LeaseState::Fenced)) fenced_before.push_back(id);
    proven.push_back({id, proof});
  }
  fence_all(decision, proven);
  for (const LeaseId id : fenced_before) {
    collect_memory(decision, decision.state.leases.at(id));
  }
}

/// Stores words that the earlier broker journaled but did not store.
void store_behind_words(Decision& decision, std::span<const LeaseId> behind) {
  for (const LeaseId id : behind) {
    const LeaseRecord& record = decision.state.leases.at(id);
    const WorkerId index = decision.state.workers.find(record.worker())->index;
    decision.add(
        effect::StoreWords{index, {{id, record.state(), reason_of(record.lease)}}, decision.now});
  }
}

/// Sets the time until which each worker may resume, and the earliest start of its timeouts.
void set_worker_deadlines(Decision& decision, const Facts& facts) {
  for (const auto& [id, restored] : decision.state.workers.all()) {
    Worker& worker = *decision.state.workers.find(id);
    worker.timeouts_from = facts.now;
    const bool may_return = !worker.segment_lost && !worker.untrusted;
    if (may_return) worker.reattach_until = facts.now + facts.reattach_grace;
    if (facts.table) continue;
    // The worker still reads the old table, which no broker writes any more, and stops at the
    // deadlines in it.
    decision.state.leases.for_each_open([&worker](const LeaseRecord& record) {
      if (record.worker() != worker.id || !record.is(LeaseState::Live)) return;
      worker.timeouts_from = std::max(worker.timeouts_from, record.deadline);
    });
  }
}

void revoke_lost(Decision& decision, const Facts& facts, const Restored& restored) {
  const auto& workers = decision.state.workers;
  revoke_leases(decision, restored.never_sent, RevokeReason::Released);
  const RevokeReason no_segment =
      facts.table ? RevokeReason::WorkerGone : RevokeReason::WorkerReplaced;
  revoke_where(decision, no_segment, [&](const LeaseRecord& record) {
    return workers.find(record.worker())->segment_lost;
  });
  revoke_leases(decision, restored.region_lost, RevokeReason::WorkerGone);
  revoke_where(decision, RevokeReason::HolderGone, [&](const LeaseRecord& record) {
    return facts.exited_holders.contains(record.holder_process);
  });
}

/// Continues the work that was in progress when the earlier broker ended.
void resume_pending_work(Decision& decision, const Facts& facts, const Restored& restored) {
  std::vector<LeaseId> waiting = open_leases_where(
      decision.state, [](const LeaseRecord& record) { return record.is(LeaseState::Revoked); });
  revoke_lost(decision, facts, restored);
  add_quiet_watches(decision, waiting);
  for (const LeaseId id : restored.never_sent) {
    if (decision.state.leases.find_open(id) == nullptr) continue;
    LeaseRecord& record = decision.state.leases.at(id);
    if (record.is(LeaseState::Fenced)) {
      collect_memory(decision, record);
    } else {
      fence_if_never_mapped(decision, record);
    }
  }
  for (const ProcessExit& exit : facts.exited_workers) {
    decide_event(decision, WorkerExited{exit});
  }
  std::vector<ExtentId> returned;
  decision.state.leases.for_each_open([&](const LeaseRecord& record) {
    if (!record.is(LeaseState::Live)) return;
    std::ranges::copy_if(record.extents, std::back_inserter(returned), [&](ExtentId extent) {
      return decision.state.extents.find(extent)->state == ExtentState::Scrubbing;
    });
  });
  verify_extents(decision, returned);
}

void touch_dropped(Decision& decision, const journal::Image& image, const Restored& restored) {
  for (const LeaseId id : restored.stale_leases) {
    decision.touch(id);
    const journal::LeaseRow& row = image.leases.at(id);
    if (row.scope != wire::LeaseScope::Engine) decision.touched.closed.push_back({id, row.tenant});
  }
  for (const ExtentId id : restored.dropped_extents) decision.touch(id);
  for (const RegionId id : restored.dropped_regions) decision.touch(id);
}

}  // namespace

Result<Recovered> recover(const journal::Image& image, const Facts& facts, BrokerConfig config) {
  const auto restarted = RecoveryObserver::observe(image.boot_id, facts.boot_id);
  Restored restored = TRY(restore(image, facts, std::move(config), restarted.has_value()));
  Decision decision(restored.state, facts.now);
  touch_dropped(decision, image, restored);
  if (restarted) {
    fence_after_reboot(decision, *restarted);
  } else {
    store_behind_words(decision, restored.stale_words);
    set_worker_deadlines(decision, facts);
    resume_pending_work(decision, facts, restored);
    end_all_outdated_texts(decision);
  }
  journal_decision(decision, image.extent_size_bytes);
  // This row is the last, so that all other rows are written before they count for this boot.
  if (image.boot_id != facts.boot_id) {
    decision.add(
        effect::Journal{.batch = {.rows = {journal::BootRow{facts.boot_id}}, .durable = true}});
  }
  std::vector<Effect> effects = decision.take_effects();
  return Recovered{.state = std::move(restored.state),
                   .words = std::move(restored.words),
                   .effects = std::move(effects)};
}

std::vector<std::pair<AttachmentId, ProcessIdentity>> worker_processes(
    const journal::Image& image) {
  std::vector<std::pair<AttachmentId, ProcessIdentity>> processes;
  for (const auto& [id, row] : image.workers) processes.emplace_back(id, row.process);
  return processes;
}

std::set<ProcessIdentity> holder_processes(const journal::Image& image) {
  std::set<ProcessIdentity> processes;
  for (const auto& [id, row] : image.leases) {
    const bool held = row.state == LeaseState::Live && row.scope == wire::LeaseScope::Tenant;
    if (held && row.holder.pid != 0) processes.insert(row.holder);
  }
  return processes;
}

}  // namespace leasehold

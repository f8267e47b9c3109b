#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/revoke.hpp"

namespace leasehold {
namespace {

/// Limit on the entries that are logged and recorded per check, which may find every entry changed.
constexpr std::size_t kRecorded = 32;

std::string worker_with_index(const State& state, std::uint32_t index) {
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.index.value == index && worker.state != WorkerState::Gone) return worker.name;
  }
  return "";
}

events::WorkerUntrusted describe(const State& state, const TableEntry& entry) {
  events::WorkerUntrusted event{.what = std::string(name(entry.part)), .index = entry.index};
  if (entry.part == TablePart::Counter) event.worker = worker_with_index(state, entry.index);
  if (entry.part != TablePart::Slot) return event;
  if (const LeaseRecord* record = state.leases.in_slot(entry.index)) {
    event.lease = to_string(record->id());
    event.worker = state.workers.find(record->worker())->name;
  }
  return event;
}

}  // namespace

/// The table is already repaired from the broker's own copy. A lease whose slot was changed is
/// revoked, because work may have run under the wrong word.
void decide_event(Decision& decision, const TableTampered& tampered) {
  decision.state.counts.tampered += tampered.entries.size();
  std::vector<LeaseId> live;
  for (const TableEntry& entry : tampered.entries) {
    if (entry.part != TablePart::Slot) continue;
    const LeaseRecord* record = decision.state.leases.in_slot(entry.index);
    if (record != nullptr && record->is(LeaseState::Live)) live.push_back(record->id());
  }
  revoke_leases(decision, live, RevokeReason::WorkerUntrusted);
  for (std::size_t i = 0; i < std::min(kRecorded, tampered.entries.size()); ++i) {
    const events::WorkerUntrusted event = describe(decision.state, tampered.entries[i]);
    decision.warn(fmt::format(
        "another process changed the lease table; repaired; run workers as another user "
        "(--worker-uid) what={} index={} lease={} worker={} reason=worker_untrusted",
        event.what, event.index, event.lease, event.worker));
    decision.record(event);
  }
}

}  // namespace leasehold

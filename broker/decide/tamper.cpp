#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/revoke.hpp"

namespace leasehold {
namespace {

/// One check may find every entry changed; the history keeps the first ones and the number.
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

/// The words are back already: the broker's own copy is the truth. What stood behind a changed one
/// may have been used as somebody else wanted, so its lease ends.
void decide_event(Decision& decision, const TableTampered& tampered) {
  decision.state.tampered += tampered.entries.size();
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
        "the lease table was changed by somebody else, repaired what={} index={} lease={} "
        "worker={} reason=worker_untrusted; next: run workers as another user (--worker-uid)",
        event.what, event.index, event.lease, event.worker));
    decision.record(event);
  }
}

}  // namespace leasehold

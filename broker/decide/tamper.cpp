#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/revoke.hpp"

namespace leasehold {
namespace {

/// One check may find every line changed; the history keeps the first ones and the number.
constexpr std::size_t kRecorded = 32;

std::string worker_with_index(const State& state, std::uint32_t index) {
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.index.value == index && worker.state != WorkerState::Gone) return worker.name;
  }
  return "";
}

events::WorkerUntrusted describe(const State& state, const TableEntry& line) {
  events::WorkerUntrusted event{.what = std::string(name(line.part)), .index = line.index};
  if (line.part == TablePart::Counter) event.worker = worker_with_index(state, line.index);
  if (line.part != TablePart::Slot) return event;
  if (const LeaseRecord* record = state.leases.in_slot(line.index)) {
    event.lease = to_string(record->id());
    event.worker = state.workers.find(record->worker())->name;
  }
  return event;
}

}  // namespace

/// The words are back already: the broker's own copy is the truth. What stood behind a changed one
/// may have been used as somebody else wanted, so its lease ends.
void decide_event(Decision& decision, const TableTampered& tampered) {
  decision.state.tampered += tampered.lines.size();
  std::vector<LeaseId> live;
  for (const TableEntry& line : tampered.lines) {
    if (line.part != TablePart::Slot) continue;
    const LeaseRecord* record = decision.state.leases.in_slot(line.index);
    if (record != nullptr && record->is(LeaseState::Live)) live.push_back(record->id());
  }
  take_back(decision, live, RevokeReason::WorkerUntrusted);
  for (std::size_t i = 0; i < std::min(kRecorded, tampered.lines.size()); ++i) {
    const events::WorkerUntrusted event = describe(decision.state, tampered.lines[i]);
    decision.warn(fmt::format(
        "the lease table was changed by somebody else, repaired what={} index={} lease={} "
        "worker={} reason=worker_untrusted; next: run workers as another user (--worker-uid)",
        event.what, event.index, event.lease, event.worker));
    decision.record(event);
  }
}

}  // namespace leasehold

#include "broker/decide/lease/record.hpp"

#include <utility>

namespace leasehold {

void record_lease(Decision& decision, const LeaseRecord& record) {
  decision.touch(record.id());
  const auto* fenced = std::get_if<Lease<Fenced>>(&record.lease);
  decision.record(events::LeaseStateChanged{
      .lease = record.id(),
      .state = record.state(),
      .reason = reason_of(record.lease),
      .tenant = record.tenant.value,
      .proof = fenced ? std::string(name(fenced->state().proof)) : std::string()});
}

void record_extent(Decision& decision, ExtentId extent, const LeaseRecord* owner) {
  decision.touch(extent);
  const ExtentRecord* found = decision.state.extents.find(extent);
  const ExtentState state = found ? found->state : ExtentState::Free;
  decision.record(events::RegionStateChanged{.region = extent.value,
                                             .kind = "extent",
                                             .state = std::string(name(state)),
                                             .lease = owner ? to_string(owner->id()) : ""});
}

void record_region(Decision& decision, const WeightsRegion& region, std::string_view state) {
  decision.touch(region.id);
  decision.record(events::RegionStateChanged{
      .region = region.id.value, .kind = "weights", .state = std::string(state), .lease = ""});
}

void record_operator_action(Decision& decision, const journal::OperatorActionRow& action) {
  decision.record(events::OperatorAction{.action = action.action,
                                         .object = action.object,
                                         .uid = action.uid,
                                         .reason = action.reason,
                                         .done = action.done});
  decision.record_operator_action(action);
}

namespace {

std::int64_t& value_of(wire::RevokeClocks& clocks, RevokeClock clock) {
  switch (clock) {
    case RevokeClock::Refuse:
      return clocks.refuse_ns;
    case RevokeClock::Error:
      return clocks.error_ns;
    case RevokeClock::Quiet:
      return clocks.quiet_ns;
    case RevokeClock::Reuse:
      return clocks.reuse_ns;
  }
  std::unreachable();
}

}  // namespace

void note_latency(Decision& decision, LeaseRecord& record, RevokeClock clock,
                  Duration since_word_stored) {
  std::int64_t& value_ns = value_of(record.end.clocks, clock);
  if (value_ns >= 0) return;
  value_ns = since_word_stored.count();
  if (!is_revocation(reason_of(record.lease))) return;
  decision.state.counts.clocks[static_cast<std::size_t>(clock)].add(since_word_stored,
                                                                    decision.now);
}

}  // namespace leasehold

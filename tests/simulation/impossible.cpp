// Pairs of transition and fault that cannot meet, each with its reason.
#include "broker/books/extents.hpp"
#include "broker/books/weights.hpp"
#include "tests/simulation/coverage.hpp"

namespace leasehold::simulation {
namespace {

/// Fault labels that this machine reaches. A new label must be added here.
bool is_reached(FaultSite site) {
  switch (site) {
    case FaultSite::BrokerJournalWritten:
    case FaultSite::BrokerGrantDecided:
    case FaultSite::BrokerGrantPublished:
    case FaultSite::BrokerRevokePublished:
    case FaultSite::BrokerFenceDecided:
    case FaultSite::BrokerScrubbed:
    case FaultSite::WorkerAttached:
    case FaultSite::WorkerResumed:
    case FaultSite::WorkerRedelivered:
    case FaultSite::WorkerWeightsFilled:
    case FaultSite::WorkerExtentsMapped:
    case FaultSite::WorkerUnitPolled:
    case FaultSite::WorkerCommitBeforeRecord:
    case FaultSite::WorkerCommitAfterRecord:
    case FaultSite::WorkerExtentsUnmapped:
    case FaultSite::TenantLeaseAcquired:
    case FaultSite::TenantRequestSubmitted:
    case FaultSite::TenantTokenReceived:
      return true;
    case FaultSite::WorkerSpillRead:  // the simulation spills nothing
    case FaultSite::CellBeatSent:     // it has no process of an agent or a gateway
    case FaultSite::CellBeatArrived:
    case FaultSite::CellPartAdmitted:
    case FaultSite::CellPartWritten:
    case FaultSite::CellKeysChecked:
    case FaultSite::GatewayExpiryDecided:
    case FaultSite::GatewayHostExpired:
    case FaultSite::GatewayMoveDecided:
    case FaultSite::GatewaySuccessorRuns:
    case FaultSite::GatewayAnswerReady:
      return false;
  }
  return false;
}

bool touches(const Transition& transition, ExtentState state) {
  return transition.from == static_cast<std::uint8_t>(state) ||
         transition.to == static_cast<std::uint8_t>(state);
}

}  // namespace

std::optional<std::string> why_impossible(const Transition& transition, FaultColumn column) {
  using enum ExtentState;
  if (transition.kind == Kind::Swap && touches(transition, Retained)) return "swap is not kept";
  if (transition.kind == Kind::Swap && touches(transition, Held)) return "swap is host memory";
  if (transition.kind == Kind::Extent && touches(transition, Held)) {
    const bool returns =
        column.site == FaultSite::WorkerResumed || column.site == FaultSite::WorkerRedelivered;
    if (returns) return "a broker that lends a card keeps no table, so no worker reconnects to it";
  }
  if (!is_reached(column.site)) return "the simulation has no code with this label";
  return std::nullopt;
}

/// An adoption needs a worker that died and a successor that is ready in the middle of a schedule,
/// which most faults leave no time for.
bool counts_over_all_faults(const Transition& transition) {
  using enum ExtentState;
  return transition.kind == Kind::Extent &&
         transition.from == static_cast<std::uint8_t>(Retained) &&
         transition.to == static_cast<std::uint8_t>(Owned);
}

}  // namespace leasehold::simulation

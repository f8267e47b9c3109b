// Pairs of transition and fault that cannot meet, each with its reason.
#include "broker/extents.hpp"
#include "broker/weights.hpp"
#include "broker/workers.hpp"
#include "tests/simulation/coverage.hpp"

namespace leasehold::simulation {
namespace {

constexpr Transition of(ExtentState from, ExtentState to) {
  return {Kind::Extent, static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to)};
}

}  // namespace

std::optional<std::string> why_impossible(const Transition& transition, FaultColumn column) {
  using enum ExtentState;
  if (transition == of(Draining, Retained) || transition == of(Retained, Scrubbing)) {
    return "nothing is kept for adoption yet";
  }
  if (transition == of(Quarantined, Scrubbing)) return "only an operator clears it, by hand";
  const bool broker = column.site <= FaultSite::BrokerScrubbed;
  if (broker && column.strike == Strike::Kill) {
    return "this machine has no disk to recover from; tests/process kills brokers";
  }
  return std::nullopt;
}

}  // namespace leasehold::simulation

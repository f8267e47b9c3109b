/// Bugs that the simulation can plant, to show that its judge finds them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace leasehold::cell::simulation {

enum class PlantedBug : std::uint8_t {
  None,
  ValidityFromReply,       ///< The ceiling counts from the reply of a beat.
  BeatWithoutCompare,      ///< A beat replaces any other.
  ExpiryWithoutCompare,    ///< An observer deletes a host that has sent a newer beat.
  VoidWithoutIncarnation,  ///< A part is dropped without comparing that its host is gone.
  BrokerBeforeLedger,      ///< The broker is raised before the ledger's reply.
  ReturnBeforeConfirm,     ///< The ledger is lowered while requests still run.
  LimitsKeptOverJoin,      ///< A fenced host keeps its broker's limits.
  RenewalPastCeiling,      ///< The broker renews beyond the ceiling.
  EarlyDeletionTrusted,    ///< etcd deletes a host's key while the host may run, as a lease would.
  PositionUnchecked,       ///< A gateway takes a token from a host that it has left.
  InsteadOfForEver,        ///< A replacement counts for nothing after the replaced part has gone.
  FastClock,               ///< The clocks of two machines differ by 2 % under a long TTL.
};

struct NamedBug {
  PlantedBug bug;
  std::string_view name;
};

inline constexpr std::array<NamedBug, 13> kPlantedBugs{{
    {PlantedBug::None, "none"},
    {PlantedBug::ValidityFromReply, "validity-from-reply"},
    {PlantedBug::BeatWithoutCompare, "beat-without-compare"},
    {PlantedBug::ExpiryWithoutCompare, "expiry-without-compare"},
    {PlantedBug::VoidWithoutIncarnation, "void-without-incarnation"},
    {PlantedBug::BrokerBeforeLedger, "broker-before-ledger"},
    {PlantedBug::ReturnBeforeConfirm, "return-before-confirm"},
    {PlantedBug::LimitsKeptOverJoin, "limits-kept-over-join"},
    {PlantedBug::RenewalPastCeiling, "renewal-past-ceiling"},
    {PlantedBug::EarlyDeletionTrusted, "early-deletion-trusted"},
    {PlantedBug::PositionUnchecked, "position-unchecked"},
    {PlantedBug::InsteadOfForEver, "instead-of-for-ever"},
    {PlantedBug::FastClock, "fast-clock"},
}};

constexpr std::optional<PlantedBug> planted_bug_from_name(std::string_view text) {
  for (const NamedBug& each : kPlantedBugs)
    if (each.name == text) return each.bug;
  return std::nullopt;
}

}  // namespace leasehold::cell::simulation

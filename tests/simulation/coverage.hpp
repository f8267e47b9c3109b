/// Which transition met which fault, how often.
///
/// A transition *meets* a fault when it happens after the fault triggered, in the same schedule:
/// the rest of the world must go on as promised while somebody is dead or stands still there. The
/// transitions are those of the `may_become` tables of the code, so a new one cannot be forgotten.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/machine.hpp"

namespace leasehold::simulation {

enum class Kind : std::uint8_t { Lease, Extent, Worker, Region };

struct Transition {
  Kind kind{};
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  bool operator==(const Transition&) const = default;
};

/// What memory of a card brings with it, each of which must happen often enough.
enum class CardEvent : std::uint8_t {
  SettleWaited,           ///< The line was quiet and the card was not.
  SettledImmediately,     ///< Neither was busy.
  SettledByGate,          ///< A gate inside a graph saw the newer mirror, the graph went on.
  SettledByEnd,           ///< The last launch that was begun before ended.
  RanAfterFlip,           ///< A kernel that was queued already worked for a revoked lease.
  RanEmpty,               ///< A kernel that was queued already found somebody dead in the mirror.
  WaitedForMirror,        ///< A launch stood behind a write of the mirror.
  RanWhileWorkerStopped,  ///< The worker's process stood still, its card did not.
  LentAgain,              ///< Memory that was another lease's, on the same worker.
  FalseUnmapReport,       ///< A worker said that it had unmapped and had not.
  AbandonedWhileAllocating,  ///< A lease ended before its memory was there.
  RevokedWhileAllocating,    ///< Memory was there, its lease was not any more.
  ReleasedAtExit,            ///< What was held went back to the card.
  NotReturned,               ///< The driver's figure did not come back.
  AllocationFailed,
  ClearFailed,
  AgentDied,
  AgentDiedBusy,
  AgentHung,
  AgentRestarted,
};
inline constexpr int kCardEventCount = static_cast<int>(CardEvent::AgentRestarted) + 1;
std::string_view name(CardEvent event);

/// Every transition of every table.
const std::vector<Transition>& all_transitions();
std::optional<std::size_t> index_of(const Transition& transition);
std::string name(const Transition& transition);

/// One column: a label and what is done there.
struct FaultColumn {
  FaultSite site{};
  FaultAction action{};
};
inline constexpr std::size_t kColumnCount = std::size_t{kFaultSiteCount} * 2;
constexpr std::size_t index_of(FaultColumn column) {
  return static_cast<std::size_t>(column.site) * 2 + static_cast<std::size_t>(column.action);
}
constexpr FaultColumn column_at(std::size_t index) {
  return {static_cast<FaultSite>(index / 2), static_cast<FaultAction>(index % 2)};
}
std::string name(FaultColumn column);

/// Why this pair can never be met; nothing when it can.
std::optional<std::string> why_impossible(const Transition& transition, FaultColumn column);

class Coverage {
 public:
  Coverage();
  void met(const Transition& transition, FaultColumn column);
  void happened(const Transition& transition);
  void happened(CardEvent event) { ++on_card_[static_cast<std::size_t>(event)]; }
  void broker_restarted(bool with_store) { ++restarts_[with_store]; }
  void triggered(FaultColumn column) { ++triggered_[index_of(column)]; }
  void add(const Coverage& other);

  /// Pairs that can be met, and events of a card, that were fewer than `least`, one line each.
  std::vector<std::string> shortfalls(std::uint64_t least) const;
  /// Pairs declared impossible that were met all the same: the declaration is wrong.
  std::vector<std::string> wrongly_impossible() const;
  std::string table() const;

 private:
  std::vector<std::array<std::uint64_t, kColumnCount>> met_;
  std::vector<std::uint64_t> happened_;
  std::array<std::uint64_t, kColumnCount> triggered_{};
  std::array<std::uint64_t, 2> restarts_{};
  std::array<std::uint64_t, kCardEventCount> on_card_{};
};

}  // namespace leasehold::simulation

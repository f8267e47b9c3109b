/// How often each transition met each fault.
///
/// A transition *meets* a fault when it happens after the fault triggered, in the same schedule:
/// the other processes must keep the promises while one is dead or stopped there. The transitions
/// are those of the code's `may_become` tables, so a new one cannot be forgotten.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/machine.hpp"

namespace leasehold::simulation {

/// An extent of the KV pool, or of swap.
enum class Kind : std::uint8_t { Lease, Extent, Swap, Worker, Region };

struct Transition {
  Kind kind{};
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  bool operator==(const Transition&) const = default;
};

/// Events of memory on a card; each must happen often enough.
enum class CardEvent : std::uint8_t {
  SettleWaited,           ///< The gates were quiet, the card was not.
  SettledImmediately,     ///< Neither gates nor card were busy.
  SettledByGate,          ///< A gate inside a graph saw the newer mirror while the graph went on.
  SettledByEnd,           ///< The last launch begun before it ended.
  RanAfterFlip,           ///< A kernel already queued worked for a revoked lease.
  RanEmpty,               ///< A kernel already queued found no live sequence in the mirror.
  WaitedForMirror,        ///< A launch waited for a write of the mirror.
  RanWhileWorkerStopped,  ///< The worker's process was stopped, its card was not.
  LentAgain,              ///< Memory of another lease, lent again on the same worker.
  FalseUnmapReport,       ///< A worker reported an unmap that it had not done.
  AbandonedWhileAllocating,  ///< A lease ended before its memory was allocated.
  RevokedWhileAllocating,    ///< Memory was allocated, but its lease was revoked meanwhile.
  ReleasedAtExit,            ///< Held memory went back to the card.
  NotReturned,               ///< The driver's free figure did not rise again.
  AllocationFailed,
  ClearFailed,
  AgentDied,
  AgentDiedBusy,
  AgentHung,
  AgentRestarted,
};
inline constexpr int kCardEventCount = static_cast<int>(CardEvent::AgentRestarted) + 1;
std::string_view name(CardEvent event);

/// What happened to texts. Of a death: the text has had a token since.
enum class TextEvent : std::uint8_t {
  TenantDied,
  ResumingTenantDied,  ///< Before the first token after it had submitted the text again.
  WorkerDied,          ///< The one that generated it.
  AdoptingWorkerDied,  ///< Before the first token from adopted memory.
  FailoverWorkerDied,  ///< The old or the new one, while its lease moved.
  BrokerDied,
  BrokerDiedInAdoption,
  BrokerAndWorkerDied,   ///< Between two tokens.
  Adopted,               ///< Continued in memory of a dead worker.
  ContinuedByHandover,   ///< Continued in memory of a worker that was replaced.
  RecordWasAhead,        ///< Adopted memory had positions that had not arrived.
  ComputedAgain,         ///< Continued from its prompt and what had arrived.
  Kept,                  ///< Continued from what its worker had kept.
  Moved,                 ///< Continued under another lease of its worker.
  Joined,                ///< Another connection reads it.
  UnknownWhenResumed,    ///< Resumed where it was not kept, then submitted.
  ResumedAfterItsGrace,  ///< Resumed where it was kept no longer.
  RecordWasTorn,         ///< Continued from the older slot of a record.
  WholeAfterDeaths,
};
inline constexpr int kTextEventCount = static_cast<int>(TextEvent::WholeAfterDeaths) + 1;
std::string_view name(TextEvent event);

/// What happened to adapters and to the texts under them.
enum class AdapterEvent : std::uint8_t {
  Registered,
  Replaced,
  Removed,
  Loaded,
  LoadedAgain,  ///< A content that the worker had loaded before.
  EvictedForRoom,
  EvictedForText,
  Unloaded,
  LeftAfterReplacement,
  RevokedWhileLoaded,
  RevokedWhileFilling,
  WorkerDiedWhileFilling,
  UnfilledEnded,  ///< After a restart of the broker.
  Redelivered,    ///< Filled, after a restart of the broker.
  OverQuota,
  NoRoom,
  OtherDigest,       ///< Of a file that was changed without a new version.
  ChangedWhileRead,  ///< A file.
  Unknown,           ///< Removed, or of another tenant.
  OtherVersion,      ///< A text was not continued under a newer version.
  RevokedInText,     ///< The lease of its adapter ended a text, which was sent again.
  ReadTogether,      ///< Texts of two tenants read one shared adapter in a step.
  OldVersionRead,    ///< A text went on under a version that had been replaced or removed.
  WholeText,
  Published,                 ///< A text was published under an adapter.
  PublishedAgain,            ///< After the death of its worker.
  PublishedRead,             ///< By a text under it.
  PublishedReadAfterReload,  ///< Under another lease of the content that computed it.
  PublishedVersionEnded,     ///< A published text ended with its version.
  PublishedRevoked,          ///< A published text ended with a revocation of its adapter.
  OtherVersionToPublish,     ///< A text was not published under a newer version.
  RevokedWhilePublishing,    ///< The lease of its adapter ended, and with it the computation.
};
inline constexpr int kAdapterEventCount =
    static_cast<int>(AdapterEvent::RevokedWhilePublishing) + 1;
std::string_view name(AdapterEvent event);

/// Every transition of every table.
const std::vector<Transition>& all_transitions();
std::optional<std::size_t> index_of(const Transition& transition);
std::string name(const Transition& transition);

/// One column: a fault label and the action there.
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

/// The reason why this pair can never meet; nothing when it can.
std::optional<std::string> why_impossible(const Transition& transition, FaultColumn column);

/// True for a transition that need not meet each fault, and is required over all of them.
bool counts_over_all_faults(const Transition& transition);

class Coverage {
 public:
  Coverage();
  void met(const Transition& transition, FaultColumn column);
  void happened(const Transition& transition);
  void happened(CardEvent event) { ++on_card_[static_cast<std::size_t>(event)]; }
  void happened(TextEvent event) { ++of_texts_[static_cast<std::size_t>(event)]; }
  void happened(AdapterEvent event) { ++of_adapters_[static_cast<std::size_t>(event)]; }
  void broker_restarted(bool with_store) { ++restarts_[with_store]; }
  void triggered(FaultColumn column) { ++triggered_[index_of(column)]; }
  void add(const Coverage& other);

  /// Pairs that can meet, and events of cards, texts and adapters, that happened fewer than `least`
  /// times, one line each.
  std::vector<std::string> shortfalls(std::uint64_t least) const;
  /// Pairs declared impossible that met nevertheless: the declaration is wrong.
  std::vector<std::string> wrongly_impossible() const;
  std::string table() const;

 private:
  std::vector<std::array<std::uint64_t, kColumnCount>> met_;
  std::vector<std::uint64_t> happened_;
  std::array<std::uint64_t, kColumnCount> triggered_{};
  std::array<std::uint64_t, 2> restarts_{};
  std::array<std::uint64_t, kCardEventCount> on_card_{};
  std::array<std::uint64_t, kTextEventCount> of_texts_{};
  std::array<std::uint64_t, kAdapterEventCount> of_adapters_{};
};

}  // namespace leasehold::simulation

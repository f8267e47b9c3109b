/// The 64-bit word that says whether a lease may be used.
///
///   word = generation:48 | state:8 | reason:8        zero is Closed
///
/// A worker compares the *whole* word with the one it was granted. Any difference (state,
/// generation, a page that reads as zero) means "no". Within a generation a word moves
/// Closed → Live → Revoked → Fenced and never back. Generations only grow.
///
/// C++20-clean: kernels may include it.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold {

enum class LeaseState : std::uint8_t { Closed = 0, Live = 1, Revoked = 2, Fenced = 3 };
inline constexpr int kLeaseStateCount = 4;

/// The transition table of a slot's word. Fenced → Live starts the next generation; every other
/// transition stays within one.
constexpr bool may_become(LeaseState from, LeaseState to) {
  switch (from) {
    case LeaseState::Closed:
    case LeaseState::Fenced:
      return to == LeaseState::Live;
    case LeaseState::Live:
      return to == LeaseState::Revoked;
    case LeaseState::Revoked:
      return to == LeaseState::Fenced;
  }
  return false;
}

/// Why a lease was revoked. A closed list; `None` is the reason of Closed and Live words. The
/// numbers are in lease tables and journals, so they never change; 5 and 7 are not used.
enum class RevokeReason : std::uint8_t {
  None = 0,
  Released = 1,
  Operator = 2,
  TtlExpired = 3,
  HolderGone = 4,
  PreemptedByPriority = 6,
  DrainDeadline = 8,
  WorkerGone = 9,
  WorkerHung = 10,
  WorkerReplaced = 11,
  WorkerUntrusted = 12,
  DeviceFault = 13,
  ModelUnloaded = 14,  ///< Ends leases of adapters, and of texts published under them, only.
  PolicyChanged = 15,
  MachineRestarted = 16,
  WeightsLost = 17,
  WorkerAsleep = 18,  ///< Revokes engine leases only.
  CellLost = 19,      ///< Revokes leases of a cell's tenants only.
};

inline constexpr RevokeReason kLastRevokeReason = RevokeReason::CellLost;
/// One more than the highest number.
inline constexpr int kRevokeReasonCount = static_cast<int>(kLastRevokeReason) + 1;

/// False for numbers that name no reason. Words are input, so they may hold any number.
constexpr bool is_known(RevokeReason reason) {
  const auto number = static_cast<unsigned>(reason);
  return number < kRevokeReasonCount && number != 5 && number != 7;
}

/// False if the holder released the lease, a drain let its requests finish, or no request used the
/// adapter, or the adapter's published text, that the lease holds.
constexpr bool is_revocation(RevokeReason reason) {
  return reason != RevokeReason::None && reason != RevokeReason::Released &&
         reason != RevokeReason::ModelUnloaded;
}

struct LeaseWord {
  std::uint64_t bits = 0;

  static constexpr LeaseWord make(std::uint64_t generation, LeaseState state,
                                  RevokeReason reason = RevokeReason::None) {
    return {generation << 16 | std::uint64_t{static_cast<std::uint8_t>(state)} << 8 |
            std::uint64_t{static_cast<std::uint8_t>(reason)}};
  }

  constexpr std::uint64_t generation() const { return bits >> 16; }
  constexpr LeaseState state() const { return static_cast<LeaseState>(bits >> 8 & 0xFF); }
  constexpr RevokeReason reason() const { return static_cast<RevokeReason>(bits & 0xFF); }
  constexpr bool operator==(const LeaseWord&) const = default;
};

/// "Live", "Revoked" …; "Unknown" for any other byte, because readers treat the word as input.
constexpr std::string_view name(LeaseState state) {
  switch (state) {
    case LeaseState::Closed:
      return "Closed";
    case LeaseState::Live:
      return "Live";
    case LeaseState::Revoked:
      return "Revoked";
    case LeaseState::Fenced:
      return "Fenced";
  }
  return "Unknown";
}

/// "operator", "ttl_expired" …, as on every wire; "unknown" for any other byte.
constexpr std::string_view name(RevokeReason reason) {
  constexpr std::string_view kNames[kRevokeReasonCount] = {"none",
                                                           "released",
                                                           "operator",
                                                           "ttl_expired",
                                                           "holder_gone",
                                                           "",
                                                           "preempted_by_priority",
                                                           "",
                                                           "drain_deadline",
                                                           "worker_gone",
                                                           "worker_hung",
                                                           "worker_replaced",
                                                           "worker_untrusted",
                                                           "device_fault",
                                                           "model_unloaded",
                                                           "policy_changed",
                                                           "machine_restarted",
                                                           "weights_lost",
                                                           "worker_asleep",
                                                           "cell_lost"};
  const auto i = static_cast<unsigned>(reason);
  return is_known(reason) ? kNames[i] : "unknown";
}

}  // namespace leasehold

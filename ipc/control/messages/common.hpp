/// Types that several messages share. The rules for all messages are in ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold {

/// Names an API key (ipc/control/tokens/api_key.hpp).
using ApiKeyId = StrongName<struct ApiKeyTag>;

/// Names an adapter, over all tenants of the broker (ipc/control/messages/adapters/adapters.hpp).
using AdapterName = StrongName<struct AdapterTag>;

/// Names a cell: hosts that share the limits of tenants (tools/cell/README.md).
using CellName = StrongName<struct CellTag>;

}  // namespace leasehold

namespace leasehold::wire {

using Json = nlohmann::json;

/// Base of every message T. The bodies are in codec.hpp, instantiated in the source file of T.
template <class T>
struct Message {  // NOLINT(bugprone-crtp-constructor-accessibility): messages are aggregates
  Json to_json() const;
  /// Errors: BadRequest, naming the field.
  static Result<T> from_json(const Json& json);
};

/// How long the broker waits for a worker's reply to a call. Every message of a call from the
/// broker to a worker has one, as `kReplyTimeout`.
enum class ReplyTimeout : std::uint8_t {
  Call,  ///< The broker's timeout for calls; then the caller gets TimedOut.
  Kill,  ///< The call never times out; the broker kills a worker that does not reply in time.
  None   ///< The reply may take as long as the work.
};

/// What a lease covers on one worker: an engine's weights, one tenant's KV, the KV of one published
/// text, or the matrices of one version of an adapter.
enum class LeaseScope : std::uint8_t { Engine, Tenant, Shared, Adapter };
inline constexpr int kLeaseScopeCount = 4;
std::string_view name(LeaseScope scope);  ///< "engine", "tenant", "shared", "adapter"

/// How a tenant is treated when memory is short. The broker revokes leases of scavengers to provide
/// the reserves of guaranteed tenants; standard tenants keep their leases
/// (broker/decide/memory/reserves.hpp).
enum class Tier : std::uint8_t { Guaranteed, Standard, Scavenger };
std::string_view name(Tier tier);  ///< "guaranteed", "standard", "scavenger"

/// The pool that an extent belongs to. Swap is host memory even when the KV memory is a card's; it
/// holds blocks of sequences that wait.
enum class MemoryPool : std::uint8_t { Kv, Swap };
inline constexpr int kMemoryPoolCount = 2;
std::string_view name(MemoryPool pool);  ///< "kv", "swap"

/// How a request continues under another lease. Reprefill: its tokens are computed again.
/// Checkpoint and Preemptive: its KV blocks are copied while both leases are live, because the old
/// lease drains (Checkpoint) or soon reaches its end (Preemptive). Failover: another worker gets
/// the memory of the old lease. Adopt: the worker died, and the worker of the new lease gets the
/// memory.
enum class RebindMode : std::uint8_t { Reprefill, Checkpoint, Preemptive, Failover, Adopt };
inline constexpr int kRebindModeCount = 5;
/// "reprefill", "checkpoint", "preemptive", "failover", "adopt"
std::string_view name(RebindMode mode);
/// True for the modes in which the old lease is live when the new one replaces it.
constexpr bool is_move(RebindMode mode) {
  return mode != RebindMode::Reprefill && mode != RebindMode::Adopt;
}

struct Empty : Message<Empty> {};

}  // namespace leasehold::wire

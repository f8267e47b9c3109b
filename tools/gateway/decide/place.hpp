/// Chooses the host of a request. Pure, and the same in every gateway that sees the same hosts.
///
/// Requests of one key with the same beginning go to one host, so that it finds their cached
/// prefix: of the hosts that serve the model, the one with the greatest weight takes the request
/// (rendezvous hashing). A host is left out while it refuses, while another one has a better state
/// (Ready, then Asleep, then Late), and while one more request would load it above 1.25 times the
/// mean of the hosts that are left.
///
/// A name that no host reports may be that of an adapter. Each key has adapters of its own, and so
/// has each host; the hosts that load adapters are asked one after another, until one knows it.
///
/// Sources: Thaler, Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996; Mirrokni,
/// Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2018.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tools/gateway/decide/host_table.hpp"

namespace leasehold::gateway {

/// Bytes of the prompt that choose the host.
inline constexpr std::size_t kPlacedPromptBytes = 1024;

/// FNV-1a with 64 bits over the key, a zero byte, and the first kPlacedPromptBytes of the prompt.
/// A key contains no zero byte.
std::uint64_t placement_digest(std::string_view key, std::string_view prompt);

/// SplitMix64 of the digest and of the FNV-1a of the host's address.
std::uint64_t placement_weight(std::uint64_t digest, std::string_view address);

/// The identity that the host of a text with tokens must have.
struct WantedIdentity {
  std::string identity;
  bool any_arithmetic = false;  ///< Only the model's content must be equal.
};

/// True if a text that was computed with `wanted` may continue on a host with `identity`.
bool may_continue(const WantedIdentity& wanted, std::string_view identity);

struct PlaceQuery {
  std::string_view model;  ///< Empty: any.
  std::uint64_t digest = 0;
  const WantedIdentity* wanted = nullptr;  ///< Null: a new text.
  std::span<const HostId> without = {};    ///< Hosts that this request does not go to.
  bool only_ready = false;   ///< Otherwise an Asleep or Late host takes it if no Ready one can.
  bool needs_files = false;  ///< Only for hosts that keep files.
};

/// Errors, in this order: NoModelLoaded if no host has reported; UnknownWorker if no host has
/// reported the model or loads adapters, or keeps files (the answer is 404); UnknownWorker if hosts
/// serve it, and none with the wanted identity; NoModelLoaded if such hosts exist, and none is
/// Ready, Asleep or Late; QueueFull with `retry_after_ms` if those that are refuse. Cost: O(hosts).
Result<HostId> place(const HostTable& hosts, const PlaceQuery& query, TimePoint now);

}  // namespace leasehold::gateway

/// Names the owners of the limits that a request uses, and counts what it took from them and gives
/// back.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages/common.hpp"

namespace leasehold {

/// The tenant or the API key that a limit belongs to.
struct RateOwner {
  TenantId tenant;
  ApiKeyId key;  ///< Empty: the tenant itself.
  auto operator<=>(const RateOwner&) const = default;
};

/// What a request took from the limits of its tenant and key.
struct RateCharge {
  std::vector<RateOwner> owners;    ///< Of the limits that the request uses.
  std::uint64_t unused_tokens = 0;  ///< Taken from the tokens per minute and not used.
  std::uint64_t held_tokens = 0;    ///< Held against the tokens of the day.
};

/// What a request gives back while it runs or when it ends.
struct RateReturn {
  std::uint64_t unused_tokens = 0;  ///< Returned to the tokens per minute.
  std::uint64_t held_tokens = 0;    ///< No longer held against the tokens of the day.
  std::uint32_t ended = 0;          ///< Requests that ended.

  void add(const RateReturn& more) {
    unused_tokens += more.unused_tokens;
    held_tokens += more.held_tokens;
    ended += more.ended;
  }
};

}  // namespace leasehold

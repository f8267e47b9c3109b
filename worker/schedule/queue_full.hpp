/// The refusal of a request that finds the queue full.
#pragma once

#include <fmt/format.h>

#include "common/counted.hpp"
#include "common/fair_shares.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold {

/// QueueFull for a request of the tenant. The filling of a published text has no tenant.
inline std::unexpected<Error> queue_full(const TenantId& tenant, const ResourceShare& share) {
  const std::string owner = tenant.value.empty() ? "the broker, which publishes texts,"
                                                 : fmt::format("tenant {}", tenant.value);
  return fail(
      Errc::QueueFull,
      fmt::format("{} has {} waiting, its share of a queue of {} that holds {}; retry later", owner,
                  counted(share.held, "request"), share.capacity, share.taken));
}

}  // namespace leasehold

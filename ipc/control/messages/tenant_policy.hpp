/// The fields that TenantPolicy and TenantAdmit share.
#pragma once

#include "ipc/control/messages/limits.hpp"
#include "ipc/control/messages/operator.hpp"
#include "ipc/control/messages/rate_fields.hpp"

namespace leasehold::wire {

inline constexpr auto kTenantPolicy = [](auto& m, auto& fields) {
  constexpr bool kHasCell = requires { m.cell; };
  fields.field("tenant", m.tenant);
  fields.field("max_concurrent", m.max_concurrent, kHasCell ? kConcurrentOrZero : kConcurrent);
  fields.field("max_blocks", m.max_blocks, kHasCell ? kBlocksOrZero : kBlocks);
  fields.field("reserved_blocks", m.reserved_blocks, kBlocksOrZero);
  fields.field("weight", m.weight, kWeight);
  fields.field("tier", m.tier, EnumCount{3});
  fields.field("ttl_ms", m.ttl_ms, Between<std::int64_t>{100, 86'400'000});
  fields.field("max_lifetime_ms", m.max_lifetime_ms, Between<std::int64_t>{100, 1'000'000'000'000});
  fields.field("rebinds_per_minute", m.rebinds_per_minute, Between<std::uint32_t>{1, 6'000'000});
  fields.field("rebind_burst", m.rebind_burst, Between<std::uint32_t>{1, 1u << 20});
  kRateLimits(m.rates, fields);
  if constexpr (kHasCell) {
    fields.with_default("max_adapters", m.max_adapters, 0u, kAdapters);
    fields.with_default("max_adapter_bytes", m.max_adapter_bytes, std::uint64_t{0}, kAdapterBytes);
  } else {
    fields.field("max_adapters", m.max_adapters, kAdapters);
    fields.field("max_adapter_bytes", m.max_adapter_bytes, kAdapterBytes);
  }
  fields.field("uid", m.uid);
  if constexpr (kHasCell) fields.field("cell", m.cell);
};

}  // namespace leasehold::wire

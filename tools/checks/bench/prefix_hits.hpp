/// What a cached beginning of a prompt saves of the time to its first token.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"
#include "tools/checks/bench/system.hpp"

namespace leasehold::bench {

struct PrefixLoad {
  std::uint32_t prompt_tokens = 480;
  std::uint32_t rounds = 5;  ///< Each with a prompt of new text, and one that shares 3/4 of it.
};

/// {"hit_share", "cold_s", "warm_s", "saved_share", "of_ideal"}: medians of the time to the first
/// token; the ideal is that a cached token costs no time.
/// Errors: those of TenantPool; TimedOut.
Result<nlohmann::json> measure_prefix_hits(System& system, const PrefixLoad& load);

}  // namespace leasehold::bench

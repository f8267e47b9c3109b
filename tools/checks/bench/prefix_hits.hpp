/// Measures how much a cached prefix of a prompt reduces the time to its first token.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"
#include "tools/checks/bench/system.hpp"

namespace leasehold::bench {

struct PrefixLoad {
  std::uint32_t prompt_tokens = 480;
  std::uint32_t rounds = 5;
};

/// {"hit_share", "cold_s", "warm_s", "shared_alone_s", "one_token_s", "saved_share", "of_ideal",
/// "of_computed_rows"}. Times are medians of the time to the first token of four prompts: new text,
/// a prompt that shares 3/4 of it, new text of the shared length, and a prompt of one token.
///
/// `of_ideal` is the share of time saved, divided by the share of cached blocks; it is 1 if the
/// time of a prompt is proportional to its blocks. Two effects keep it below 1: a request takes
/// time that is not spent on rows, and attention makes the first rows of a prompt cheaper than the
/// last. `of_computed_rows` excludes both: the time saved, divided by the time that the cached rows
/// take alone.
/// Errors: those of TenantPool; TimedOut.
Result<nlohmann::json> measure_prefix_hits(System& system, const PrefixLoad& load);

}  // namespace leasehold::bench

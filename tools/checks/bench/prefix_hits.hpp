/// What a cached beginning of a prompt saves of the time to its first token.
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
/// "of_computed_rows"}. Times are medians of the time to the first token of: a prompt of new text,
/// one that shares 3/4 of it, that share alone as new text, and a prompt of one token.
///
/// `of_ideal` compares with a prompt whose time is in proportion to its blocks: the share of saved
/// time by the share of cached blocks. Two things keep it below 1: the time of a request that is
/// not spent on rows, and attention, which makes the first rows of a prompt cheaper than the last.
/// `of_computed_rows` leaves out both: the saved time by the time that computing the cached rows
/// takes alone.
/// Errors: those of TenantPool; TimedOut.
Result<nlohmann::json> measure_prefix_hits(System& system, const PrefixLoad& load);

}  // namespace leasehold::bench

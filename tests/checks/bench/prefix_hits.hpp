/// How much of the time to the first token a cached beginning of a prompt saves.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"
#include "tests/checks/bench/system.hpp"

namespace leasehold::bench {

struct PrefixLoad {
  std::uint32_t prompt_tokens = 480;
  std::uint32_t rounds = 5;
};

/// {"hit_share", "cold_s", "warm_s", "shared_alone_s", "one_token_s", "saved_share", "of_ideal",
/// "of_computed_rows"}. Times are medians of the time to the first token of four prompts: a prompt
/// of new text; a prompt that shares 3/4 of that text; the shared part alone, as new text; and a
/// prompt of one token.
///
/// `of_ideal` compares with a prompt whose time is proportional to its blocks: it is the share of
/// saved time divided by the share of cached blocks. Two things keep it below 1: the part of a
/// request's time that is not spent on rows, and attention, which makes the first rows of a prompt
/// cheaper than the last. `of_computed_rows` excludes both: it is the saved time divided by the
/// time that computing the cached rows takes alone.
/// Errors: those of TenantPool; TimedOut.
Result<nlohmann::json> measure_prefix_hits(System& system, const PrefixLoad& load);

}  // namespace leasehold::bench

/// The cost of swapping a text out and in, compared with the cost of computing it again.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct SwapBenchConfig {
  std::string model_path;
  std::uint32_t longest = 4096;  ///< Lengths are 64, 128 … up to this, at most the model's context.
  std::uint32_t rounds = 3;
};

/// {"swap": {"model", "f32": …, "int8": …}}, where … is {"lengths": {"64": {"swap_us",
/// "prefill_us", "share"}, …}, "largest_share", "wins_from"}: medians over the rounds of the CPU
/// time of one thread, and of their ratio. Swap copies all blocks of the text to swap memory that
/// holds no pages yet, as after a scrub, and back. The prefill computes the text without a prefix
/// hit, in steps of at most 256 rows that end at each length. "wins_from" is the shortest length
/// from which on swapping is cheaper at every length; null if there is none. Errors: those of
/// loading.
Result<nlohmann::json> measure_swap(const SwapBenchConfig& config);

}  // namespace leasehold::bench

/// The lists of SamplingParams as bytes: biases, stop tokens, stop strings, grammar. Every count is
/// a u32, little-endian:
///
///   biases n × {i32 token, f32 bias}   stop tokens n × i32   stops n × {u32 size, bytes}
///   u32 grammar kind   u32 size, bytes
///
/// No bytes when every list is empty, which is the usual case.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "worker/text/sampling/params.hpp"

namespace leasehold {

/// Upper bound for parameters that pass check_sampling.
inline constexpr std::size_t kMaxSamplingListsBytes =
    5 * sizeof(std::uint32_t) + SamplingParams::kMaxLogitBiases * sizeof(LogitBias) +
    SamplingParams::kMaxStopTokens * sizeof(TokenId) +
    SamplingParams::kMaxStops * (sizeof(std::uint32_t) + SamplingParams::kMaxStopBytes) +
    SamplingParams::kMaxGrammarBytes;

/// The size of what pack_sampling_lists returns.
std::size_t sampling_lists_bytes(const SamplingParams& params);

std::vector<std::byte> pack_sampling_lists(const SamplingParams& params);

/// Fills the lists of `params` from untrusted bytes. Errors: FileCorrupt.
Result<void> unpack_sampling_lists(std::span<const std::byte> bytes, SamplingParams& params);

}  // namespace leasehold

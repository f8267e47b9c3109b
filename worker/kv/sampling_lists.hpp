/// The part of SamplingParams that has no fixed size, as bytes: biases, stop tokens, stop strings,
/// grammar. Every count is a u32, little-endian as everything in a segment:
///
///   biases n × {i32 token, f32 bias}   stop tokens n × i32   stops n × {u32 size, bytes}
///   u32 grammar kind   u32 size, bytes
///
/// Nothing at all when each of them is empty, which is the usual case.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "worker/text/sampling/params.hpp"

namespace leasehold {

/// No params that passed check_sampling have more.
inline constexpr std::size_t kMaxSamplingListsBytes =
    5 * sizeof(std::uint32_t) + SamplingParams::kMaxLogitBiases * sizeof(LogitBias) +
    SamplingParams::kMaxStopTokens * sizeof(TokenId) +
    SamplingParams::kMaxStops * (sizeof(std::uint32_t) + SamplingParams::kMaxStopBytes) +
    SamplingParams::kMaxGrammarBytes;

/// Of `pack_sampling_lists`, without packing anything.
std::size_t sampling_lists_bytes(const SamplingParams& params);

std::vector<std::byte> pack_sampling_lists(const SamplingParams& params);

/// Fills the lists of `params`. The bytes are input. Errors: FileCorrupt.
Result<void> unpack_sampling_lists(std::span<const std::byte> bytes, SamplingParams& params);

}  // namespace leasehold

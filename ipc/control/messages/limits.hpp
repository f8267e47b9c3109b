/// Ranges that several messages share. The message headers state them in words.
#pragma once

#include "ipc/control/messages/adapters/adapters.hpp"
#include "ipc/control/messages/json_fields.hpp"
#include "ipc/control/messages/keys.hpp"
#include "ipc/segment/gate_set.hpp"

namespace leasehold::wire {

inline constexpr Between<std::uint32_t> kConcurrent{1, kMaxStepSequences};
inline constexpr Between<std::uint32_t> kConcurrentOrZero{0, kMaxStepSequences};
inline constexpr Between<std::uint32_t> kBlocks{1, 1u << 20};
inline constexpr Between<std::uint32_t> kBlocksOrZero{0, 1u << 20};
inline constexpr Between<std::uint32_t> kWeight{1, 1000};
inline constexpr Between<std::uint32_t> kPerMinute{1, kMostPerMinute};
inline constexpr Between<std::uint32_t> kPerMinuteOrZero{0, kMostPerMinute};
inline constexpr Between<std::uint64_t> kTokensPerDay{1, kMostPerDay};
inline constexpr Between<std::uint32_t> kAdapters{0, kMaxAdaptersPerOwner};
inline constexpr Between<std::uint64_t> kAdapterBytes{0, std::uint64_t{1} << 50};
inline constexpr Between<std::uint32_t> kExtents{1, 1024};
inline constexpr Between<std::int64_t> kUpToOneDay_ms{0, 86'400'000};
inline constexpr Between<std::int64_t> kBoottime_ns{0, std::numeric_limits<std::int64_t>::max()};
inline constexpr Between<std::int64_t> kUnixTime_s{0, 253'402'300'799};  // end of the year 9999
inline constexpr Between<std::int64_t> kUnixTime_ms{0, 253'402'300'799'999};
inline constexpr Between<std::int64_t> kExpiry_ms{1, kLastExpiry_ms};
inline constexpr Between<std::uint64_t> kPositiveBytes{1,
                                                       std::numeric_limits<std::uint64_t>::max()};
inline constexpr Between<std::int32_t> kTokenIds{0, std::numeric_limits<std::int32_t>::max()};
inline constexpr Between<std::uint32_t> kPageItems{0, 1000};
inline constexpr MaxItems kMaxStepItems{kMaxStepSequences};
/// Values of WorkerReady::arithmetic: the arithmetic of matmuls, and "+" the type of the KV cache
/// unless that is f16. Empty: not known.
inline constexpr std::string_view kArithmetics[] = {"",          "f32",      "int8",    "f16",
                                                    "f32+f32",   "int8+f32", "f16+f32", "f32+q8_0",
                                                    "int8+q8_0", "f16+q8_0"};

}  // namespace leasehold::wire

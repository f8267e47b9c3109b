/// Loads bytes of a weight row as words, from any block.
///
/// The alignment of a block follows from its size: 2 bytes for many formats. Nothing here reads a
/// word at an address that is not a multiple of its size, or an aligned word without a wanted byte.
#pragma once

#include "kernels/cuda/device/simt.cuh"

namespace leasehold::device {

template <std::uint32_t kWords>
struct alignas(4 * kWords) AlignedWords {
  std::uint32_t word[kWords];
};

__device__ __forceinline__ std::uint32_t load_byte(const std::byte* at) {
  return static_cast<std::uint32_t>(*at);
}
/// Loads 16 bits from an even address.
__device__ __forceinline__ std::uint16_t load_short(const std::byte* at) {
  return *reinterpret_cast<const std::uint16_t*>(at);
}
__device__ __forceinline__ float load_half(const std::byte* at) {
  return half_value(load_short(at));
}
__device__ __forceinline__ float low_half(std::uint32_t both) {
  return half_value(static_cast<std::uint16_t>(both));
}
__device__ __forceinline__ float high_half(std::uint32_t both) {
  return half_value(static_cast<std::uint16_t>(both >> 16));
}

/// Loads `kWords` words from an address that is a multiple of kAlignment: 1, 2, 4, 8 or 16.
template <std::uint32_t kAlignment, std::uint32_t kWords>
__device__ __forceinline__ void load_words(std::uint32_t (&words)[kWords], const std::byte* at) {
  if constexpr (kAlignment == 1) {
    for (std::uint32_t i = 0; i < kWords; ++i) {
      words[i] = 0;
      for (std::uint32_t k = 0; k < 4; ++k) words[i] |= load_byte(at + 4 * i + k) << 8 * k;
    }
  } else if constexpr (kAlignment == 2) {
    // Computed from the pointer, not from an integer, so that the compiler still knows the memory
    // space.
    const std::uint32_t behind =
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at)) & 3;
    const auto* first = reinterpret_cast<const std::uint32_t*>(at - behind);
    const std::uint32_t shift = (behind & 2) * 8;
    std::uint32_t low = first[0];
    for (std::uint32_t i = 0; i < kWords; ++i) {
      const bool is_wanted = i + 1 < kWords || shift != 0;
      const std::uint32_t high = first[is_wanted ? i + 1 : i];
      words[i] = static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> (shift & 31));
      low = high;
    }
  } else {
    constexpr std::uint32_t kAtOnce = kAlignment / 4 < kWords ? kAlignment / 4 : kWords;
    for (std::uint32_t i = 0; i < kWords; i += kAtOnce) {
      const auto some = *reinterpret_cast<const AlignedWords<kAtOnce>*>(at + 4 * i);
      for (std::uint32_t k = 0; k < kAtOnce; ++k) words[i + k] = some.word[k];
    }
  }
}

/// 128 + byte i of the word, exactly, for bytes below 128. The byte becomes the top of a float's
/// fraction: one byte permutation instead of a conversion at a quarter of the rate.
__device__ __forceinline__ float byte_and_128(std::uint32_t word, std::uint32_t i) {
  return __uint_as_float(__byte_perm(word, 0x43000000u, 0x7044u | i << 8));
}
/// 32768 + byte i of the word, exactly, for every byte.
__device__ __forceinline__ float byte_and_32768(std::uint32_t word, std::uint32_t i) {
  return __uint_as_float(__byte_perm(word, 0x47000000u, 0x7404u | i << 4));
}
/// (bits & mask) | under in one instruction. Without the assembly the compiler emits two
/// instructions, each with a constant.
__device__ __forceinline__ std::uint32_t masked_over(std::uint32_t bits, std::uint32_t mask,
                                                     std::uint32_t under) {
#if defined(__CUDA_ARCH__)
  std::uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(result) : "r"(bits), "r"(mask), "r"(under));
  return result;
#else
  return (bits & mask) | under;
#endif
}
/// sum + the products of the four bytes of `codes`, without a sign, and those of x, with one.
__device__ __forceinline__ std::int32_t dot_of_codes(std::uint32_t codes, std::uint32_t x,
                                                     std::int32_t sum) {
#if defined(__CUDA_ARCH__)
  std::int32_t result;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(codes), "r"(x), "r"(sum));
  return result;
#else
  for (std::uint32_t shift = 0; shift < 32; shift += 8)
    sum += static_cast<std::int32_t>(codes >> shift & 255) * static_cast<std::int8_t>(x >> shift);
  return sum;
#endif
}
/// A bit field in the fraction of a float: `both` is `power` plus the field, and the caller
/// subtracts `power`.
struct FieldOverPower {
  float both;
  float power;
};
/// The bits `kMask` at `shift` of byte i. Mask, shift and 8 more bits fit below bit 23.
template <std::uint32_t kMask>
__device__ __forceinline__ FieldOverPower field_over_power(std::uint32_t word, std::uint32_t i,
                                                           std::uint32_t shift) {
  const std::uint32_t bit = i % 2 * 8 + shift;
  const std::uint32_t power = (127 + 23 - bit) << 23;
  const std::uint32_t part = i < 2 ? word : word >> 16;
  return {__uint_as_float(masked_over(part, kMask << bit, power)), __uint_as_float(power)};
}
template <std::uint32_t kMask>
__device__ __forceinline__ float field_value(std::uint32_t word, std::uint32_t i,
                                             std::uint32_t shift) {
  const FieldOverPower field = field_over_power<kMask>(word, i, shift);
  return field.both - field.power;
}
/// factor · the bits kMask of byte i. Exact, because the two have at most 24 bits together.
template <std::uint32_t kMask>
__device__ __forceinline__ float times_field(float factor, std::uint32_t word, std::uint32_t i) {
  const FieldOverPower field = field_over_power<kMask>(word, i, 0);
  return fmaf(factor, field.both, factor * -field.power);
}

/// A table of sixteen bytes, four per word.
struct ByteTable {
  std::uint32_t words[4];
};
/// The entry of each of the four bytes of `codes`, which are below 16. A permutation chooses from
/// eight bytes, so both halves of the table are looked up.
__device__ __forceinline__ std::uint32_t table_bytes(const ByteTable& table, std::uint32_t codes) {
  // Bytes 0 and 2 of `pairs` have two codes each; a permutation reads four codes in 16 bits.
  const std::uint32_t pairs = codes | codes >> 4;
  const std::uint32_t choice = __byte_perm(pairs, 0, 0x4420) & 0x7777u;
  const std::uint32_t low = __byte_perm(table.words[0], table.words[1], choice);
  const std::uint32_t high = __byte_perm(table.words[2], table.words[3], choice);
  const std::uint32_t is_high = (codes >> 3 & 0x01010101u) * 0xFFu;
  return (low & ~is_high) | (high & is_high);
}

/// Spreads the lowest four bits: bit i becomes the lowest bit of byte i.
__device__ __forceinline__ std::uint32_t spread_bits(std::uint32_t four) {
  return (four & 15) * 0x00204081u & 0x01010101u;
}

}  // namespace leasehold::device

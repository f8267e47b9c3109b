/// Weights as halves for tensor cores: eight neighbouring elements per thread.
///
///   load8<kType>(halves, from, group, t, left)
///
/// loads elements 8t … 8t+7 of group `group` of 32, counted from `from`, where a block of the
/// format begins; halves[w] holds elements 2w and 2w+1. `left` is the number of elements from there
/// to the end of the row. Elements beyond it are zero; only formats of single elements check it.
///
/// Values are those of kernels/quant, rounded once to the nearest half; values that are too large
/// become infinite. A format with a minimum converts the byte's value and applies one fma: scale
/// times q is exact, so the fma rounds as kernels/quant does. A format without a minimum converts
/// the byte plus 128 (or 32768) and applies one fma that subtracts scale·(128 + bias). That product
/// also has at most 24 bits, so the element is exact. The sign of a zero may differ.
///
/// If a kernel calls this for all groups of a block in an unrolled loop, the compiler loads each
/// word and each header once. Source: the layouts in kernels/quant/dequantize.hpp and
/// super_blocks.hpp.
#pragma once

#include "kernels/cuda/device/row_groups.cuh"
#include "kernels/cuda/device/weight_chunks.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold::device {

/// The stored bytes of eight elements, in order, and their scale.
struct EightBytes {
  std::uint32_t low, high;  ///< elements 0 … 3 and 4 … 7
};

__device__ __forceinline__ float eight_at(const EightBytes& q, std::uint32_t i) {
  return byte_and_128(i < 4 ? q.low : q.high, i % 4);
}

/// scale · (q - kBias)
template <std::uint32_t kBias>
__device__ __forceinline__ void scaled(std::uint32_t (&halves)[4], const EightBytes& q,
                                       float scale) {
  const float offset = scale * -static_cast<float>(128 + kBias);
  for (std::uint32_t w = 0; w < 4; ++w)
    halves[w] = pack_halves(fmaf(scale, eight_at(q, 2 * w), offset),
                            fmaf(scale, eight_at(q, 2 * w + 1), offset));
}

/// scale · q + minimum, where q is the bits kMask at `shift` of each byte.
template <std::uint32_t kMask>
__device__ __forceinline__ void scaled_with_offset(std::uint32_t (&halves)[4], const EightBytes& q,
                                                   std::uint32_t shift, float scale,
                                                   float minimum) {
  for (std::uint32_t w = 0; w < 4; ++w) {
    const std::uint32_t word = w < 2 ? q.low : q.high;
    const std::uint32_t i = w % 2 * 2;
    halves[w] = pack_halves(fmaf(scale, field_value<kMask>(word, i, shift), minimum),
                            fmaf(scale, field_value<kMask>(word, i + 1, shift), minimum));
  }
}

/// The bits kMask at `shift` of every byte.
template <std::uint32_t kMask>
__device__ __forceinline__ EightBytes bits_of_each(const std::uint32_t (&words)[2],
                                                   std::uint32_t shift) {
  return {words[0] >> shift & kMask, words[1] >> shift & kMask};
}

/// Joins low bits with higher bits of each byte.
__device__ __forceinline__ EightBytes joined(const EightBytes& q, const EightBytes& above,
                                             std::uint32_t shift) {
  return {q.low | above.low << shift, q.high | above.high << shift};
}

template <TensorType kType>
struct Format;

// Blocks of 32.

/// The nibbles of thread t in q[16]. Elements half a block apart share a byte; the low nibble holds
/// the first of them.
template <std::uint32_t kAlignment>
__device__ __forceinline__ EightBytes small_nibbles(const std::byte* q, std::uint32_t t) {
  std::uint32_t words[2];
  load_words<kAlignment>(words, q + t % 2 * 8);
  return bits_of_each<0x0f0f0f0f>(words, t / 2 * 4);
}
/// The fifth bits of thread t's elements: byte t of the word.
__device__ __forceinline__ EightBytes fifth_bits(std::uint32_t word, std::uint32_t t) {
  const std::uint32_t byte = word >> (8 * t) & 0xff;
  return {spread_bits(byte), spread_bits(byte >> 4)};
}

template <>
struct Format<TensorType::Q4_0> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t,
                              std::uint32_t t) {
    scaled<8>(halves, small_nibbles<2>(block + 2, t), load_half(block));
  }
};

template <>
struct Format<TensorType::Q4_1> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t,
                              std::uint32_t t) {
    std::uint32_t scales[1];
    load_words<4>(scales, block);
    scaled_with_offset<15>(halves, small_nibbles<4>(block + 4, t), 0, low_half(scales[0]),
                           high_half(scales[0]));
  }
};

template <>
struct Format<TensorType::Q5_0> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t,
                              std::uint32_t t) {
    std::uint32_t fifth[1];
    load_words<2>(fifth, block + 2);
    const EightBytes q = joined(small_nibbles<2>(block + 6, t), fifth_bits(fifth[0], t), 4);
    scaled<16>(halves, q, load_half(block));
  }
};

template <>
struct Format<TensorType::Q5_1> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t,
                              std::uint32_t t) {
    std::uint32_t head[2];
    load_words<8>(head, block);
    const EightBytes q = joined(small_nibbles<8>(block + 8, t), fifth_bits(head[1], t), 4);
    scaled_with_offset<31>(halves, q, 0, low_half(head[0]), high_half(head[0]));
  }
};

template <>
struct Format<TensorType::Q8_0> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t,
                              std::uint32_t t) {
    std::uint32_t words[2];
    load_words<2>(words, block + 2 + 8 * t);
    const float d = load_half(block);
    const float offset = d * -32896.0F;  // 32768, and 128 for the inverted sign bit
    for (std::uint32_t w = 0; w < 4; ++w) {
      const std::uint32_t above_zero = words[w / 2] ^ 0x80808080u;
      halves[w] = pack_halves(fmaf(d, byte_and_32768(above_zero, w % 2 * 2), offset),
                              fmaf(d, byte_and_32768(above_zero, w % 2 * 2 + 1), offset));
    }
  }
};

/// scale · the value of each nibble. Value and product are exact.
template <CodeTable kTable>
__device__ __forceinline__ void scaled_values(std::uint32_t (&halves)[4], const EightBytes& q,
                                              float scale) {
  const ByteTable table = signed_values<kTable>();
  const std::uint32_t words[2] = {table_bytes(table, q.low) ^ 0x80808080u,
                                  table_bytes(table, q.high) ^ 0x80808080u};
  for (std::uint32_t w = 0; w < 4; ++w) {
    const std::uint32_t i = w % 2 * 2;
    halves[w] = pack_halves(scale * (byte_and_32768(words[w / 2], i) - 32896.0F),
                            scale * (byte_and_32768(words[w / 2], i + 1) - 32896.0F));
  }
}

template <>
struct Format<TensorType::IQ4_NL> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t,
                              std::uint32_t t) {
    scaled_values<CodeTable::Iq4>(halves, small_nibbles<2>(block + 2, t), load_half(block));
  }
};

template <>
struct Format<TensorType::MXFP4> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t,
                              std::uint32_t t) {
    scaled_values<CodeTable::Mxfp4>(halves, small_nibbles<1>(block + 1, t),
                                    half_power_of_two(load_byte(block)));
  }
};

// Blocks of 256. `j` is the group of 32 in the block.

template <>
struct Format<TensorType::IQ4_XS> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t j,
                              std::uint32_t t) {
    std::uint32_t head[2];
    load_words<8>(head, block);
    const std::uint32_t low = head[1] >> (4 * j) & 15;
    const std::uint32_t high = head[0] >> (16 + 2 * j) & 3;
    const float sub = byte_and_128(low | high << 4, 0) - 160.0F;  // minus 128 and minus 32
    scaled_values<CodeTable::Iq4>(halves, small_nibbles<8>(block + 8 + 16 * j, t),
                                  low_half(head[0]) * sub);
  }
};

/// The two-bit codes of thread t's elements; four groups share the same bytes.
template <std::uint32_t kAlignment>
__device__ __forceinline__ EightBytes two_bits(const std::byte* q, std::uint32_t j,
                                               std::uint32_t t) {
  std::uint32_t words[2];
  load_words<kAlignment>(words, q + j / 4 * 32 + 8 * t);
  return bits_of_each<0x03030303>(words, j % 4 * 2);
}
/// Bit j of thread t's bytes.
template <std::uint32_t kAlignment>
__device__ __forceinline__ EightBytes one_bit(const std::byte* high, std::uint32_t j,
                                              std::uint32_t t) {
  std::uint32_t words[2];
  load_words<kAlignment>(words, high + 8 * t);
  return bits_of_each<0x01010101>(words, j);
}
/// The bytes of thread t for group j. Groups 2i and 2i + 1 share 32 bytes: the low nibbles hold
/// group 2i, the high nibbles group 2i + 1.
__device__ __forceinline__ EightBytes paired_bytes(const std::byte* q, std::uint32_t j,
                                                   std::uint32_t t) {
  std::uint32_t words[2];
  load_words<8>(words, q + j / 2 * 32 + 8 * t);
  return {words[0], words[1]};
}

struct ScaleAndMinimum {
  float scale, minimum;
};

/// Scale and minimum of sub-block j of a Q4_K or Q5_K block. The first 16 bytes of the block hold
/// the halves d and dmin, and the six-bit numbers, four per word (kernels/quant/super_blocks.hpp).
__device__ __forceinline__ ScaleAndMinimum six_bit_scales(const std::byte* block, std::uint32_t j) {
  std::uint32_t head[4];
  load_words<16>(head, block);
  const std::uint32_t scales =
      j < 4 ? head[1] : (head[3] & 0x0f0f0f0fu) | (head[1] & 0xc0c0c0c0u) >> 2;
  const std::uint32_t minima =
      j < 4 ? head[2] : (head[3] >> 4 & 0x0f0f0f0fu) | (head[2] & 0xc0c0c0c0u) >> 2;
  return {times_field<63>(low_half(head[0]), scales, j % 4),
          times_field<63>(-high_half(head[0]), minima, j % 4)};
}

template <>
struct Format<TensorType::Q2_K> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t j,
                              std::uint32_t t) {
    std::uint32_t both[1];
    load_words<4>(both, block + 80);
    const std::uint32_t of_sub = load_byte(block + 2 * j + t / 2);
    scaled_with_offset<3>(halves, two_bits<4>(block + 16, j, t), 0,
                          times_field<15>(low_half(both[0]), of_sub, 0),
                          times_field<15>(-high_half(both[0]), of_sub >> 4, 0));
  }
};

template <>
struct Format<TensorType::Q3_K> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t j,
                              std::uint32_t t) {
    const std::uint32_t s = 2 * j + t / 2;
    const std::uint32_t four = load_byte(block + 96 + s % 8) >> (s / 8 * 4) & 15;
    const std::uint32_t two = load_byte(block + 104 + s % 4) >> (s / 4 * 2) & 3;
    const float scale = load_half(block + 108) * (byte_and_128(four | two << 4, 0) - 160.0F);
    scaled<4>(halves, joined(two_bits<2>(block + 32, j, t), one_bit<2>(block, j, t), 2), scale);
  }
};

template <>
struct Format<TensorType::Q4_K> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t j,
                              std::uint32_t t) {
    const ScaleAndMinimum sub = six_bit_scales(block, j);
    scaled_with_offset<15>(halves, paired_bytes(block + 16, j, t), j % 2 * 4, sub.scale,
                           sub.minimum);
  }
};

template <>
struct Format<TensorType::Q5_K> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t j,
                              std::uint32_t t) {
    const ScaleAndMinimum sub = six_bit_scales(block, j);
    const EightBytes nibbles = paired_bytes(block + 48, j, t);
    const std::uint32_t words[2] = {nibbles.low, nibbles.high};
    const EightBytes q =
        joined(bits_of_each<0x0f0f0f0f>(words, j % 2 * 4), one_bit<8>(block + 16, j, t), 4);
    scaled_with_offset<31>(halves, q, 0, sub.scale, sub.minimum);
  }
};

template <>
struct Format<TensorType::Q6_K> {
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* block, std::uint32_t j,
                              std::uint32_t t) {
    std::uint32_t words[2];
    load_words<2>(words, block + j / 4 * 64 + j % 2 * 32 + 8 * t);
    const EightBytes low = bits_of_each<0x0f0f0f0f>(words, j % 4 / 2 * 4);
    const auto sub = static_cast<std::int8_t>(load_byte(block + 192 + 2 * j + t / 2));
    const float scale = load_half(block + 208) * static_cast<float>(sub);
    scaled<32>(halves, joined(low, two_bits<2>(block + 128, j, t), 4), scale);
  }
};

// Single elements of 16 bits.

/// Loads eight elements as words. kIsPlain: all eight exist and begin at a multiple of 16 bytes.
/// Otherwise missing elements are zero and are not read.
template <bool kIsPlain>
__device__ __forceinline__ void load_shorts(std::uint32_t (&words)[4], const std::byte* from,
                                            std::int32_t left) {
  if constexpr (kIsPlain) {
    load_words<16>(words, from);
  } else if (left >= 8) {
    load_words<2>(words, from);
  } else {
    for (std::int32_t w = 0; w < 4; ++w) {
      words[w] = 2 * w < left ? load_short(from + 4 * w) : 0;
      if (2 * w + 1 < left) words[w] |= std::uint32_t{load_short(from + 4 * w + 2)} << 16;
    }
  }
}

template <>
struct Format<TensorType::F16> {
  template <bool kIsPlain>
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* from,
                              std::int32_t left) {
    load_shorts<kIsPlain>(halves, from, left);
  }
};

template <>
struct Format<TensorType::BF16> {
  template <bool kIsPlain>
  __device__ static void load(std::uint32_t (&halves)[4], const std::byte* from,
                              std::int32_t left) {
    std::uint32_t words[4];
    load_shorts<kIsPlain>(words, from, left);
    for (std::uint32_t w = 0; w < 4; ++w)
      halves[w] =
          pack_halves(__uint_as_float(words[w] << 16), __uint_as_float(words[w] & 0xffff0000u));
  }
};

/// kIsPlain: every element exists, and 16-bit elements begin at a multiple of 16 bytes.
template <TensorType kType, bool kIsPlain = false>
__device__ __forceinline__ void load8(std::uint32_t (&halves)[4], const std::byte* from,
                                      std::uint32_t group, std::uint32_t t, std::uint32_t left) {
  constexpr std::uint32_t kElements = kWeightChunk<kType>.block_elements;
  constexpr std::uint32_t kBytes = kWeightChunk<kType>.block_bytes;
  if constexpr (kElements == 1) {
    const std::uint32_t first = 32 * group + 8 * t;
    Format<kType>::template load<kIsPlain>(
        halves, from + first * kBytes,
        static_cast<std::int32_t>(left) - static_cast<std::int32_t>(first));
  } else {
    constexpr std::uint32_t kGroups = kElements / 32;
    Format<kType>::load(halves, from + group / kGroups * kBytes, group % kGroups, t);
  }
}

}  // namespace leasehold::device

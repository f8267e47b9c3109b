/// Keys or values in shared memory: how a block copies them there, and how a thread reads them as
/// floats.
///
/// A buffer has tile_positions rows, kv_row_stride_bytes apart. Codes of Q8_0
/// (kernels/numerics/kv_q8.hpp) are followed by the scales of all rows, without gaps.
#pragma once

#include <type_traits>

#include "kernels/cuda/device/attention/attention_tile.cuh"

namespace leasehold::device {

/// True for codes of Q8_0, whose scales are stored separately. Their heads have a multiple of 32
/// elements.
template <class Stored>
inline constexpr bool kHasScales = std::is_same_v<Stored, std::int8_t>;

template <class Stored>
inline constexpr KvType kStoredAs = kHasScales<Stored>              ? KvType::Q8_0
                                    : std::is_same_v<Stored, float> ? KvType::F32
                                                                    : KvType::F16;

/// Rows of a buffer, from some row and element on.
template <class Stored>
struct KvRows {
  const Stored* elements;
  std::uint32_t stride;  ///< In elements.

  __device__ KvRows from(std::uint32_t element) const { return {elements + element, stride}; }
};
template <>
struct KvRows<std::int8_t> {
  const std::int8_t* elements;
  std::uint32_t stride;
  const std::uint16_t* scales;
  std::uint32_t n_scales;  ///< Per row.

  /// `element` counts from the start of a block of a scale.
  __device__ KvRows from(std::uint32_t element) const {
    return {elements + element, stride, scales + element / kKvScaleBlock, n_scales};
  }
};

__device__ __forceinline__ std::uint32_t scales_offset_bytes(const AttentionParams& p) {
  return p.tile_positions * kv_row_stride_bytes(p.head_dim, KvType::Q8_0);
}

template <class Stored>
__device__ __forceinline__ KvRows<Stored> kv_rows(const AttentionParams& p, const std::byte* buffer,
                                                  std::uint32_t row, std::uint32_t element) {
  const std::uint32_t stride = kv_row_stride_bytes(p.head_dim, kStoredAs<Stored>);
  const auto* elements = reinterpret_cast<const Stored*>(buffer + row * stride) + element;
  if constexpr (kHasScales<Stored>) {
    const std::uint32_t n_scales = p.head_dim / kKvScaleBlock;
    const auto* scales = reinterpret_cast<const std::uint16_t*>(buffer + scales_offset_bytes(p));
    return {elements, stride, scales + row * n_scales + element / kKvScaleBlock, n_scales};
  } else {
    return {elements, stride / static_cast<std::uint32_t>(sizeof(Stored))};
  }
}

/// Multiplies codes by a scale d. The result has the bits of kv_value: byte c + 128 of a code c
/// becomes the float 2^15 + 128 + c, and its offset times d (9 bits times 11) is exact, so that the
/// fma rounds nothing. An infinite d gives NaN, because its codes are 0.
struct CodeScale {
  float d;
  float offset;

  __device__ explicit CodeScale(std::uint16_t half)
      : d(half_value(half)), offset(32896.0F * half_value(half)) {}
  /// The value of code i of a word of four, whose bytes are code + 128.
  __device__ float value(std::uint32_t codes, std::uint32_t i) const {
    const std::uint32_t shifted = __byte_perm(codes, 0x47000000u, 0x7504u | i << 4);
    return fmaf(__uint_as_float(shifted), d, -offset);
  }
};

__device__ __forceinline__ void load_octet(const float* from, float (&out)[8]) {
  const float4 low = reinterpret_cast<const float4*>(from)[0];
  const float4 high = reinterpret_cast<const float4*>(from)[1];
  const float all[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  for (std::uint32_t i = 0; i < 8; ++i) out[i] = all[i];
}
/// Loads elements 8·octet … + 7 of the first row as floats.
__device__ __forceinline__ void load_octet(const KvRows<std::uint16_t>& row, std::uint32_t octet,
                                           float (&out)[8]) {
  const uint4 words = *reinterpret_cast<const uint4*>(row.elements + 8 * octet);
  const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
  for (std::uint32_t i = 0; i < 4; ++i) {
    out[2 * i] = half_value(static_cast<std::uint16_t>(pairs[i] & 0xffffu));
    out[2 * i + 1] = half_value(static_cast<std::uint16_t>(pairs[i] >> 16));
  }
}
__device__ __forceinline__ void load_octet(const KvRows<float>& row, std::uint32_t octet,
                                           float (&out)[8]) {
  load_octet(row.elements + 8 * octet, out);
}
__device__ __forceinline__ void load_octet(const KvRows<std::int8_t>& row, std::uint32_t octet,
                                           float (&out)[8]) {
  const uint2 words = *reinterpret_cast<const uint2*>(row.elements + 8 * octet);
  const CodeScale scale(row.scales[octet * 8 / kKvScaleBlock]);
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    out[i] = scale.value(words.x ^ 0x80808080u, i);
    out[4 + i] = scale.value(words.y ^ 0x80808080u, i);
  }
}

/// Loads the first two elements of row i as floats.
__device__ __forceinline__ float2 load_pair(const KvRows<std::uint16_t>& rows, std::uint32_t i) {
  const std::uint32_t both =
      *reinterpret_cast<const std::uint32_t*>(rows.elements + i * rows.stride);
  return {half_value(static_cast<std::uint16_t>(both & 0xffffu)),
          half_value(static_cast<std::uint16_t>(both >> 16))};
}
__device__ __forceinline__ float2 load_pair(const KvRows<float>& rows, std::uint32_t i) {
  return *reinterpret_cast<const float2*>(rows.elements + i * rows.stride);
}
__device__ __forceinline__ float2 load_pair(const KvRows<std::int8_t>& rows, std::uint32_t i) {
  const std::uint32_t both =
      *reinterpret_cast<const std::uint16_t*>(rows.elements + i * rows.stride) ^ 0x8080u;
  const CodeScale scale(rows.scales[i * rows.n_scales]);
  return {scale.value(both, 0), scale.value(both, 1)};
}

/// Loads the first four elements of row i as floats.
__device__ __forceinline__ float4 load_quad(const KvRows<std::uint16_t>& rows, std::uint32_t i) {
  const uint2 words = *reinterpret_cast<const uint2*>(rows.elements + i * rows.stride);
  return {half_value(static_cast<std::uint16_t>(words.x & 0xffffu)),
          half_value(static_cast<std::uint16_t>(words.x >> 16)),
          half_value(static_cast<std::uint16_t>(words.y & 0xffffu)),
          half_value(static_cast<std::uint16_t>(words.y >> 16))};
}
__device__ __forceinline__ float4 load_quad(const KvRows<float>& rows, std::uint32_t i) {
  return *reinterpret_cast<const float4*>(rows.elements + i * rows.stride);
}
__device__ __forceinline__ float4 load_quad(const KvRows<std::int8_t>& rows, std::uint32_t i) {
  const std::uint32_t codes =
      *reinterpret_cast<const std::uint32_t*>(rows.elements + i * rows.stride) ^ 0x80808080u;
  const CodeScale scale(rows.scales[i * rows.n_scales]);
  return {scale.value(codes, 0), scale.value(codes, 1), scale.value(codes, 2),
          scale.value(codes, 3)};
}

/// A range of keys or values of a partition.
struct KvSpan {
  std::uint32_t plane;  ///< 0 keys, 1 values
  std::uint32_t first;  ///< Relative to the partition.
  std::uint32_t count;
};

/// The threads that copy rows, and the elements of a row that they copy: `first` and `count` are
/// multiples of eight.
struct KvCopiers {
  std::uint32_t index;  ///< Of this thread among them.
  std::uint32_t threads;
  std::uint32_t first;
  std::uint32_t count;
};
/// The whole block copies whole rows.
__device__ __forceinline__ KvCopiers block_copiers(const AttentionParams& p) {
  return {threadIdx.x, blockDim.x, 0, 8 * octets(p.head_dim)};
}

__device__ __forceinline__ std::uint64_t kv_row(const AttentionParams& p,
                                                const std::uint64_t* blocks, const KvSpan& span,
                                                std::uint32_t i, std::uint32_t row_bytes) {
  const std::uint32_t position = span.first + i;
  return blocks[position / KvLayout::kBlockTokens] + span.plane * p.kv.values_bytes +
         position % KvLayout::kBlockTokens * row_bytes;
}

/// Copies rows of whole octets asynchronously, 16 bytes at a time.
template <class Stored>
__device__ __forceinline__ void load_kv_words(const AttentionParams& p, const std::uint64_t* blocks,
                                              const KvSpan& span, std::byte* to,
                                              const KvCopiers& by) {
  constexpr auto kSize = static_cast<std::uint32_t>(sizeof(Stored));
  const std::uint32_t row_bytes = p.head_dim * kSize;
  const std::uint32_t stride = kv_row_stride_bytes(p.head_dim, kStoredAs<Stored>);
  const std::uint32_t words = by.count * kSize / 16;
  std::uint32_t i = by.index / words;
  std::uint32_t word = by.index % words;
  while (i < span.count) {
    const std::uint32_t at = by.first * kSize + 16 * word;
    const std::uint64_t from = kv_row(p, blocks, span, i, row_bytes) + at;
    copy_async_16(to + i * stride + at, reinterpret_cast<const void*>(from));
    i += by.threads / words;
    word += by.threads % words;
    if (word >= words) {
      word -= words;
      ++i;
    }
  }
}

/// Copies rows of any length, padded with zeros.
template <class Stored>
__device__ __forceinline__ void load_kv_elements(const AttentionParams& p,
                                                 const std::uint64_t* blocks, const KvSpan& span,
                                                 std::byte* to, const KvCopiers& by) {
  const std::uint32_t row_bytes = p.head_dim * static_cast<std::uint32_t>(sizeof(Stored));
  const std::uint32_t stride = kv_row_stride_bytes(p.head_dim, kStoredAs<Stored>);
  for (std::uint32_t at = by.index; at < span.count * by.count; at += by.threads) {
    const std::uint32_t i = at / by.count;
    const std::uint32_t d = by.first + at % by.count;
    const auto* from = reinterpret_cast<const Stored*>(kv_row(p, blocks, span, i, row_bytes));
    reinterpret_cast<Stored*>(to + i * stride)[d] = d < p.head_dim ? from[d] : Stored{};
  }
}

/// Copies the scales of all rows of the span, and of later rows up to a multiple of eight: the
/// scales of eight rows are whole 16-byte words in a block and in the buffer, and eight such rows
/// are in one block.
__device__ __forceinline__ void load_kv_scales(const AttentionParams& p,
                                               const std::uint64_t* blocks, const KvSpan& span,
                                               std::byte* to, const KvCopiers& by) {
  constexpr std::uint32_t kRows = 8;
  const std::uint32_t row_bytes = kv_scales_bytes(p.head_dim, KvType::Q8_0);
  const std::uint32_t words = kRows * row_bytes / 16;
  const std::uint32_t count = (span.count + kRows - 1) / kRows * words;
  for (std::uint32_t i = by.index; i < count; i += by.threads) {
    const std::uint64_t scales = kv_row(p, blocks, span, i / words * kRows, row_bytes) +
                                 std::uint64_t{KvLayout::kBlockTokens} * p.head_dim;
    copy_async_16(to + 16 * i, reinterpret_cast<const void*>(scales + i % words * 16));
  }
}

/// Copies elements of the rows of a span, without scales.
template <class Stored>
__device__ __forceinline__ void load_kv_rows(const AttentionParams& p, const std::uint64_t* blocks,
                                             const KvSpan& span, std::byte* to,
                                             const KvCopiers& by) {
  if (kHasScales<Stored> || p.head_dim % 8 == 0)
    load_kv_words<Stored>(p, blocks, span, to, by);
  else
    load_kv_elements<Stored>(p, blocks, span, to, by);
}

/// Fills a buffer with the rows of a span. The whole block calls it.
template <class Stored>
__device__ __forceinline__ void load_kv_tile(const AttentionParams& p, const std::uint64_t* blocks,
                                             const KvSpan& span, std::byte* to) {
  load_kv_rows<Stored>(p, blocks, span, to, block_copiers(p));
  if constexpr (kHasScales<Stored>)
    load_kv_scales(p, blocks, span, to + scales_offset_bytes(p), block_copiers(p));
}

}  // namespace leasehold::device

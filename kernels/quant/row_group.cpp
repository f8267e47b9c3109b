#include "kernels/quant/row_group.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/quant/element.hpp"
#include "kernels/quant/file_quads.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kQuad = 4;
constexpr std::uint32_t kNumbers = 16;
constexpr std::uint32_t kMaxElements = 256;

/// Where the bits of four elements of a row are in planes of `bits` per element.
struct PlaneBits {
  std::size_t at;
  std::uint32_t shift;
  std::uint32_t mask;
};

constexpr PlaneBits plane_bits_of(std::uint32_t bits, std::uint32_t row, std::uint32_t quad) {
  const std::uint32_t per_plane = 8 / bits;
  return {.at = std::size_t{quad / per_plane} * kPlaneBytes + row * kQuad,
          .shift = quad % per_plane * bits,
          .mask = ((1u << bits) - 1) * 0x01010101u};
}

/// Precondition: the bits at this place are zero.
void put_quad(std::byte* planes, std::uint32_t bits, std::uint32_t row, std::uint32_t quad,
              std::uint32_t codes) {
  const PlaneBits place = plane_bits_of(bits, row, quad);
  const std::uint32_t word = file::load_quad(planes + place.at) | (codes & place.mask)
                                                                      << place.shift;
  std::memcpy(planes + place.at, &word, sizeof word);
}

std::uint32_t get_quad(const std::byte* planes, std::uint32_t bits, std::uint32_t row,
                       std::uint32_t quad) {
  const PlaneBits place = plane_bits_of(bits, row, quad);
  return file::load_quad(planes + place.at) >> place.shift & place.mask;
}

/// The byte with the upper two bits of four numbers of a row of IQ4_XS: 16 bits per row, behind the
/// plane of the lower bits.
constexpr std::size_t pair_bits_at(std::uint32_t row, std::uint32_t quad) {
  return kPlaneBytes + row * sizeof(std::uint16_t) + quad;
}

/// Numbers of 6 bits have planes for the low 4 bits, then planes for the high 2 bits.
template <GroupFormat kFormat>
void put_numbers(std::byte* planes, std::uint32_t row, std::uint32_t quad, std::uint32_t numbers) {
  if constexpr (kFormat.sub_scale_bits == 8) return put_quad(planes, 8, row, quad, numbers);
  put_quad(planes, 4, row, quad, numbers);
  if constexpr (kFormat.n_numbers == kNumbers)
    return put_quad(planes + 2 * std::size_t{kPlaneBytes}, 2, row, quad, numbers >> 4);
  std::uint32_t upper = 0;
  for (std::uint32_t i = 0; i < kQuad; ++i) upper |= (numbers >> (8 * i + 4) & 3) << 2 * i;
  planes[pair_bits_at(row, quad)] = static_cast<std::byte>(upper);
}

std::uint32_t get_numbers(const GroupFormat& format, const std::byte* planes, std::uint32_t row,
                          std::uint32_t quad) {
  if (format.sub_scale_bits == 8) return get_quad(planes, 8, row, quad);
  const std::uint32_t low = get_quad(planes, 4, row, quad);
  if (format.n_numbers == kNumbers)
    return low | get_quad(planes + 2 * std::size_t{kPlaneBytes}, 2, row, quad) << 4;
  const auto upper = static_cast<std::uint32_t>(planes[pair_bits_at(row, quad)]);
  std::uint32_t numbers = low;
  for (std::uint32_t i = 0; i < kQuad; ++i) numbers |= (upper >> 2 * i & 3) << (8 * i + 4);
  return numbers;
}

/// The offset of d, which m follows if there is one, in a block of the file.
template <TensorType kType>
constexpr std::size_t kHalvesAt = kType == TensorType::Q2_K   ? Q2KFields::kD
                                  : kType == TensorType::Q3_K ? Q3KFields::kD
                                  : kType == TensorType::Q6_K ? Q6KFields::kD
                                                              : 0;

/// The word of a plane of kBits per element that has the codes of a row of a block, from bit kShift
/// on. All places are constants.
template <TensorType kType, std::uint32_t kBits, std::uint32_t kShift, std::uint32_t kPlane>
[[gnu::always_inline]] inline std::uint32_t plane_word(const std::byte* from) {
  constexpr std::uint32_t kPerPlane = 8 / kBits;
  return [&]<std::uint32_t... kAt>(std::integer_sequence<std::uint32_t, kAt...>) {
    return (((file::codes<kType>(from, (kPlane * kPerPlane + kAt) * kQuad) >> kShift &
              plane_bits_of(kBits, 0, kAt).mask)
             << plane_bits_of(kBits, 0, kAt).shift) |
            ...);
  }(std::make_integer_sequence<std::uint32_t, kPerPlane>());
}

/// Stores each word of a row in the planes once.
template <TensorType kType, std::uint32_t kBits, std::uint32_t kShift>
[[gnu::always_inline]] inline void put_planes(const std::byte* from, std::uint32_t row,
                                              std::byte* planes) {
  const auto put = [&](std::uint32_t plane, std::uint32_t word) {
    std::memcpy(planes + std::size_t{plane} * kPlaneBytes + row * kQuad, &word, sizeof word);
  };
  [&]<std::uint32_t... kPlane>(std::integer_sequence<std::uint32_t, kPlane...>) {
    (put(kPlane, plane_word<kType, kBits, kShift, kPlane>(from)), ...);
  }(std::make_integer_sequence<std::uint32_t, group_format(kType).elements * kBits / 32>());
}

template <TensorType kType>
void interleave_block(const std::byte* from, std::uint32_t row, std::byte* to) {
  constexpr GroupFormat kFormat = group_format(kType);
  std::memcpy(to + row * kFormat.scale_bytes, from + kHalvesAt<kType>, kFormat.scale_bytes);
  if constexpr (kFormat.has_min)
    std::memcpy(to + (kGroupRows + row) * kHalfBytes, from + kHalvesAt<kType> + kHalfBytes,
                kHalfBytes);
  if constexpr (kFormat.has_sub_blocks()) {
    const auto put = [&]<std::uint32_t kFirst> {
      std::uint32_t numbers = 0;
#pragma GCC unroll 4
      for (std::uint32_t i = 0; i < kQuad; ++i)
        numbers |= file::number<kType>(from, kFirst + i) << 8 * i;
      put_numbers<kFormat>(to + kFormat.sub_scales_at(), row, kFirst / kQuad, numbers);
    };
    [&]<std::uint32_t... kNumbersQuad>(std::integer_sequence<std::uint32_t, kNumbersQuad...>) {
      (put.template operator()<kNumbersQuad * kQuad>(), ...);
    }(std::make_integer_sequence<std::uint32_t, kFormat.n_numbers / kQuad>());
  }
  put_planes<kType, kFormat.low_bits, 0>(from, row, to + kFormat.low_at());
  if constexpr (kFormat.high_bits != 0)
    put_planes<kType, kFormat.high_bits, kFormat.low_bits>(from, row, to + kFormat.high_at());
}

template <TensorType kType>
void interleave(const std::byte* rows, std::uint32_t n_rows, std::uint32_t n_in, std::byte* group) {
  constexpr GroupFormat kFormat = group_format(kType);
  std::memset(group, 0, row_group_bytes(kType, n_in));
  for (std::uint32_t row = 0; row < n_rows; ++row)
    for (std::size_t b = 0; b < n_in / kFormat.elements; ++b, rows += block_shape(kType).size_bytes)
      interleave_block<kType>(rows, row, group + b * kFormat.size_bytes());
}

/// One row of a block of a group. A block of 32 is one sub-block with a scale of 1 and a minimum of
/// -1, because m is added.
struct RowBlock {
  float d;
  float m = 0;
  std::int8_t elements[kMaxElements];
  std::int32_t scales[kNumbers] = {1};
  std::int32_t mins[kNumbers] = {-1};
};

std::int32_t byte_of(std::uint32_t quad, std::uint32_t i) {
  return static_cast<std::int32_t>(quad >> 8 * (i % kQuad) & 255);
}

void read_numbers(TensorType type, const std::byte* planes, std::uint32_t row, RowBlock& to) {
  const GroupFormat format = group_format(type);
  for (std::uint32_t n = 0; n < format.n_numbers; ++n) {
    const std::int32_t number = byte_of(get_numbers(format, planes, row, n / kQuad), n);
    switch (type) {
      case TensorType::Q2_K:
        to.scales[n] = number & 15;
        to.mins[n] = number >> 4;
        break;
      case TensorType::Q3_K:
      case TensorType::IQ4_XS:
        to.scales[n] = number - 32;
        break;
      case TensorType::Q6_K:
        to.scales[n] = number < 128 ? number : number - 256;
        break;
      default:
        (n < 8 ? to.scales : to.mins)[n % 8] = number;
    }
  }
}

RowBlock read_block(TensorType type, const std::byte* block, std::uint32_t row) {
  const GroupFormat format = group_format(type);
  const std::byte* d = block + row * format.scale_bytes;
  RowBlock read{.d = type == TensorType::MXFP4
                         ? half_power_of_two(static_cast<std::uint32_t>(read_byte(d)))
                         : read_half(d)};
  if (format.has_min) read.m = read_half(block + (kGroupRows + row) * kHalfBytes);
  if (format.has_sub_blocks()) read_numbers(type, block + format.sub_scales_at(), row, read);
  for (std::uint32_t quad = 0; quad < format.elements / kQuad; ++quad) {
    std::uint32_t codes = get_quad(block + format.low_at(), format.low_bits, row, quad);
    if (format.high_bits != 0)
      codes |= get_quad(block + format.high_at(), format.high_bits, row, quad) << format.low_bits;
    for (std::uint32_t i = 0; i < kQuad; ++i) {
      const std::int32_t stored = byte_of(codes, i);
      const std::int32_t code =
          format.table == CodeTable::None ? stored : code_values(format.table).of[stored];
      read.elements[quad * kQuad + i] = static_cast<std::int8_t>(code - format.offset);
    }
  }
  return read;
}

std::uint32_t sub_block_of(const GroupFormat& format) {
  return format.has_sub_blocks() ? format.sub_block : format.elements;
}

/// Adds block b of the dot product to `chunk`, the sum of its chunk.
float add_block(const GroupFormat& format, const RowBlock& w, const RoundedRow& x, std::size_t b,
                float chunk) {
  const std::uint32_t size = sub_block_of(format);
  const std::int8_t* q = x.q + b * format.elements;
  const std::int16_t* sums = x.sums + b * (format.elements / kInt8Strip);
  std::int32_t products = 0;
  std::int32_t minima = 0;
  for (std::uint32_t s = 0; s < format.elements / size; ++s) {
    std::int32_t product = 0;
    for (std::uint32_t e = s * size; e < (s + 1) * size; ++e) product += w.elements[e] * q[e];
    std::int32_t sum = 0;
    for (std::uint32_t e = s * size; e < (s + 1) * size; e += kInt8Strip)
      sum += sums[e / kInt8Strip];
    products += w.scales[s] * product;
    minima -= w.mins[s] * sum;
  }
  chunk = std::fma(w.d * x.scale[b], static_cast<float>(products), chunk);
  return format.has_min ? std::fma(w.m * x.scale[b], static_cast<float>(minima), chunk) : chunk;
}

float dot_row(TensorType type, const std::byte* group, std::uint32_t row, std::uint32_t n_in,
              const RoundedRow& x) {
  const GroupFormat format = group_format(type);
  const std::uint32_t n_blocks = n_in / format.elements;
  const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
  float dot = 0;
  for (std::uint32_t begin = 0; begin < n_blocks; begin += per_chunk) {
    float chunk = 0;
    for (std::uint32_t b = begin; b < std::min(begin + per_chunk, n_blocks); ++b)
      chunk = add_block(format, read_block(type, group + std::size_t{b} * format.size_bytes(), row),
                        x, b, chunk);
    dot = begin == 0 ? chunk : dot + chunk;
  }
  return dot;
}

}  // namespace

void interleave_rows(TensorType type, const std::byte* rows, std::uint32_t n_rows,
                     std::uint32_t n_in, std::byte* group) {
  visit_group_type(type, [&]<TensorType kType> { interleave<kType>(rows, n_rows, n_in, group); });
}

void dequantize_group_row(TensorType type, const std::byte* group, std::uint32_t row, float* out,
                          std::uint32_t n_in) {
  const GroupFormat format = group_format(type);
  for (std::size_t b = 0; b < n_in / format.elements; ++b) {
    const RowBlock w = read_block(type, group + b * format.size_bytes(), row);
    for (std::uint32_t e = 0; e < format.elements; ++e) {
      const std::uint32_t s = e / sub_block_of(format);
      const float x = element::times(element::times(w.d, w.scales[s]), w.elements[e]);
      out[b * format.elements + e] = format.has_min ? x - element::times(w.m, w.mins[s]) : x;
    }
  }
}

void dot_group_int8(TensorType type, const std::byte* group, std::uint32_t n_in,
                    std::span<const RoundedRow> x, float* out) {
  for (std::size_t r = 0; r < x.size(); ++r)
    for (std::uint32_t row = 0; row < kGroupRows; ++row)
      out[r * kGroupRows + row] = dot_row(type, group, row, n_in, x[r]);
}

}  // namespace leasehold

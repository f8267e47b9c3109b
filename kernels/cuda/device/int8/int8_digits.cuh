/// The integer scales of sub-blocks as digits of three bits, so that a code times a digit fits a
/// byte: a block of 256 then takes one product of matrices per digit, and no scale of its own per
/// sub-block. With n digits
///   scale = Σ 8^(n - 1 - i) · (raw digit i - offset of digit i)
///
/// A quad is multiplied as one number of 32 bits.
#pragma once

#include "kernels/cuda/device/int8/int8_units.hpp"
#include "kernels/cuda/device/row_groups.cuh"
#include "kernels/numerics/host_device.hpp"

namespace leasehold::device {

template <TensorType kType>
struct ScaleDigits {
  using Shape = GroupShape<kType>;
  static_assert(int8_has_digits(group_format(kType)));
  static constexpr std::uint32_t kCount = kType == TensorType::Q2_K   ? 1
                                          : kType == TensorType::Q6_K ? 3
                                                                      : 2;
  /// Whether the products are signed bytes. Codes of other types have no offset.
  static constexpr bool kIsSigned = Shape::kOffset != 0;

  /// `place` counts from the highest digit.
  LEASEHOLD_HD static constexpr std::int32_t offset(std::uint32_t place) {
    if (kType == TensorType::Q3_K) return place == 0 ? 4 : 0;
    if (kType == TensorType::Q6_K) return place == 0 ? 2 : 3;
    return 0;
  }
  static constexpr std::int32_t largest_raw(std::uint32_t place) {
    if (kType == TensorType::Q2_K) return 15;
    return kType == TensorType::Q6_K && place == 0 ? 4 : 7;
  }

  /// The raw digits of the four scales that GroupRow::scales returned, one per byte.
  template <std::uint32_t kPlace>
  __device__ __forceinline__ static std::uint32_t raw(std::uint32_t scales) {
    constexpr std::uint32_t kShift = 3 * (kCount - 1 - kPlace);
    if constexpr (kType == TensorType::Q2_K) {
      return scales;
    } else if constexpr (kType == TensorType::Q6_K) {
      // The digits of scale + 219 are at least 0. 219 is 128, which makes the scale unsigned, 64,
      // which the offset of the highest digit counts, and 27.
      const std::uint32_t positive = scales ^ 0x80808080u;
      const std::uint32_t low = (positive & 0x3F3F3F3Fu) + 0x1B1B1B1Bu;
      if constexpr (kPlace == 0) return (positive >> 6 & 0x03030303u) + (low >> 6 & 0x01010101u);
      return low >> kShift & 0x07070707u;
    } else {
      return scales >> kShift & 0x07070707u;
    }
  }

  /// The quad of `codes` (GroupRow::quad) less its offset, times digit i of `raw`, as bytes.
  template <std::uint32_t kPlace>
  __device__ __forceinline__ static std::uint32_t times(std::uint32_t codes, std::uint32_t raw,
                                                        std::uint32_t i) {
    constexpr auto kOffset = static_cast<std::uint32_t>(offset(kPlace));
    const std::uint32_t digit = (raw >> 8 * i & 255) - kOffset;
    if constexpr (!kIsSigned) return codes * digit;
    // With 128 added, each product is a byte from 0 to 255, so none borrows from the next one.
    return (codes * digit + (0x80808080u - Shape::kOffsets * digit)) ^ 0x80808080u;
  }

  /// Whether every code times every digit fits a byte.
  static constexpr bool products_fit() {
    for (std::uint32_t place = 0; place < kCount; ++place)
      for (const std::int64_t code : {std::int64_t{0}, Shape::kFormat.largest_code()})
        for (const std::int32_t raw : {0, largest_raw(place)}) {
          const std::int64_t product = (code - Shape::kOffset) * (raw - offset(place));
          if (product < (kIsSigned ? -128 : 0) || product > (kIsSigned ? 127 : 255)) return false;
        }
    return true;
  }
  static_assert(products_fit());
};

}  // namespace leasehold::device

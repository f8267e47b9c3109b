/// Host memory for the rounded rows of a matmul.
#pragma once

#include <algorithm>

#include "common/zeroed_array.hpp"
#include "kernels/numerics/int8_order.hpp"

namespace leasehold {

/// Each row has room for the widest matrix row, in blocks of 32 or 256 elements. Threads: different
/// rows may be written at once.
class RoundedRows {
 public:
  RoundedRows(std::uint32_t n_rows, std::uint32_t max_width)
      : width_((max_width + kMinInt8Block - 1) / kMinInt8Block * kMinInt8Block),
        n_blocks_(width_ / kMinInt8Block),
        n_strips_(width_ / kInt8Strip),
        q_(std::size_t{n_rows} * width_),
        scales_(std::size_t{n_rows} * n_blocks_),
        sums_(std::size_t{n_rows} * n_strips_) {}

  RoundedRowBuffer buffer(std::size_t row) {
    return {q_.data() + row * width_, scales_.data() + row * n_blocks_,
            sums_.data() + row * n_strips_};
  }
  RoundedRow row(std::size_t row) const {
    return {q_.data() + row * width_, scales_.data() + row * n_blocks_,
            sums_.data() + row * n_strips_};
  }
  /// Zeroes the first `n_rows` rows.
  void clear(std::size_t n_rows) {
    std::fill_n(q_.begin(), n_rows * width_, std::int8_t{0});
    std::fill_n(scales_.begin(), n_rows * n_blocks_, 0.0F);
    std::fill_n(sums_.begin(), n_rows * n_strips_, std::int16_t{0});
  }

 private:
  std::size_t width_;
  std::size_t n_blocks_;
  std::size_t n_strips_;
  ZeroedArray<std::int8_t> q_;
  ZeroedArray<float> scales_;
  ZeroedArray<std::int16_t> sums_;
};

}  // namespace leasehold

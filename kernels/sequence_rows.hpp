/// The rows of each sequence in a launch. C++20-clean.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ipc/segment/gate_set.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

/// Consecutive rows of one sequence.
struct SequenceRows {
  std::uint32_t sequence;
  std::uint32_t first_row;
  std::uint32_t count;
};

/// One entry per sequence with rows, in their order.
class SequenceList {
 public:
  explicit SequenceList(std::span<const RowRef> rows) {
    for (std::uint32_t r = 0; r < rows.size(); ++r) {
      if (n_ == 0 || all_[n_ - 1].sequence != rows[r].sequence)
        all_[n_++] = {.sequence = rows[r].sequence, .first_row = r, .count = 0};
      ++all_[n_ - 1].count;
    }
  }
  std::span<const SequenceRows> all() const { return std::span(all_).first(n_); }

 private:
  std::array<SequenceRows, kMaxStepSequences> all_;
  std::uint32_t n_ = 0;
};

/// The number of rows before row `r` that belong to the same sequence; at most `most`.
inline std::uint32_t rows_before(std::span<const RowRef> rows, std::uint32_t r,
                                 std::uint32_t most) {
  std::uint32_t n = 0;
  while (n < most && n < r && rows[r - n - 1].sequence == rows[r].sequence) ++n;
  return n;
}

inline bool is_last_of_sequence(std::span<const RowRef> rows, std::uint32_t r) {
  return r + 1 == rows.size() || rows[r + 1].sequence != rows[r].sequence;
}

}  // namespace leasehold

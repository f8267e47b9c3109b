/// The work of rows in a step: one for each row, and one more for every kContextPerRow positions of
/// text before it, whose keys and values its attention reads.
///
/// The time of a row depends on the machine and the model, and PrefillLimit measures it. Only the
/// ratio of the two parts is fixed here. With int8 weights of the 0.5B shape on a CPU, attention to
/// 2 200 positions takes as long as the rest of a row (kernels/MEASUREMENTS.md, chunk of 256).
/// Larger models attend to more positions in that time.
///
/// Pure. Units: rows without context.
#pragma once

#include <cstdint>

namespace leasehold {

inline constexpr std::uint64_t kContextPerRow = 1024;

/// The work of the first `n` positions of a text.
constexpr std::uint64_t work_of_first(std::uint64_t n) {
  const std::uint64_t full = n / kContextPerRow;
  return n + kContextPerRow * (full * (full - (full > 0 ? 1 : 0)) / 2) +
         full * (n % kContextPerRow);
}

/// The work of the positions from … from + n_rows - 1.
constexpr std::uint64_t work_of_rows(std::uint64_t from, std::uint64_t n_rows) {
  return work_of_first(from + n_rows) - work_of_first(from);
}

static_assert(work_of_first(kContextPerRow) == kContextPerRow);
static_assert(work_of_rows(kContextPerRow, 1) == 2);
static_assert(work_of_rows(10 * kContextPerRow + 5, 3) == 33);

}  // namespace leasehold

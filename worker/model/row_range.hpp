/// Groups the rows with logits into ranges that the end of a forward pass computes together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace leasehold {

/// The rows [begin, end) of a step.
struct RowRange {
  std::uint32_t begin;
  std::uint32_t end;

  bool operator==(const RowRange&) const = default;
};

/// The most unneeded rows between two needed rows of one range: computing them takes about as long
/// as reading a layer's weights once more. With more threads rows are computed faster, but with
/// more than two the weights are not read faster.
constexpr std::uint32_t max_row_gap(std::size_t threads) {
  return 4 * static_cast<std::uint32_t>(std::max<std::size_t>(threads, 2));
}

/// Removes the first of `logit_rows`, which are ascending, and returns them as one range with gaps
/// of at most `between` rows. Precondition: `logit_rows` has one.
inline RowRange take_range(std::span<const std::uint32_t>& logit_rows, std::uint32_t between) {
  RowRange range{logit_rows.front(), logit_rows.front()};
  while (!logit_rows.empty() && logit_rows.front() - range.end <= between) {
    range.end = logit_rows.front() + 1;
    logit_rows = logit_rows.subspan(1);
  }
  return range;
}

}  // namespace leasehold

/// The rows of a step that the end of a pass computes together.
#pragma once

#include <cstdint>
#include <span>

namespace leasehold {

/// Rows of a step: [begin, end).
struct RowRange {
  std::uint32_t begin;
  std::uint32_t end;

  bool operator==(const RowRange&) const = default;
};

/// Removes the first of `logit_rows`, which are ascending, and returns them as one range. It
/// includes gaps of at most kMostBetween rows: to read a layer's weights once more takes as long as
/// a few rows. Precondition: `logit_rows` has one.
inline RowRange take_neighbours(std::span<const std::uint32_t>& logit_rows) {
  constexpr std::uint32_t kMostBetween = 8;
  RowRange range{logit_rows.front(), logit_rows.front()};
  while (!logit_rows.empty() && logit_rows.front() - range.end <= kMostBetween) {
    range.end = logit_rows.front() + 1;
    logit_rows = logit_rows.subspan(1);
  }
  return range;
}

}  // namespace leasehold

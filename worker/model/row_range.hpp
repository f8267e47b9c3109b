/// The rows of a step that the end of a pass computes together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace leasehold {

/// Rows of a step: [begin, end).
struct RowRange {
  std::uint32_t begin;
  std::uint32_t end;

  bool operator==(const RowRange&) const = default;
};

/// The most unwanted rows between two wanted ones of a range: they take about as long as to read a
/// layer's weights once more. Threads divide rows, but more than two share one memory.
constexpr std::uint32_t most_between(std::size_t threads) {
  return 4 * static_cast<std::uint32_t>(std::max<std::size_t>(threads, 2));
}

/// Removes the first of `logit_rows`, which are ascending, and returns them as one range with gaps
/// of at most `between` rows. Precondition: `logit_rows` has one.
inline RowRange take_neighbours(std::span<const std::uint32_t>& logit_rows, std::uint32_t between) {
  RowRange range{logit_rows.front(), logit_rows.front()};
  while (!logit_rows.empty() && logit_rows.front() - range.end <= between) {
    range.end = logit_rows.front() + 1;
    logit_rows = logit_rows.subspan(1);
  }
  return range;
}

}  // namespace leasehold

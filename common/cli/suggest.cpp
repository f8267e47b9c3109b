#include "common/cli/suggest.hpp"

#include <algorithm>
#include <vector>

namespace leasehold {

std::size_t edit_distance(std::string_view from, std::string_view to) {
  // distance[i][j] is between the first i letters of `from` and the first j of `to`.
  std::vector<std::vector<std::size_t>> distance(from.size() + 1,
                                                 std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) distance[i][0] = i;
  for (std::size_t j = 0; j <= to.size(); ++j) distance[0][j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t change = from[i - 1] == to[j - 1] ? 0 : 1;
      std::size_t& here = distance[i][j];
      here = std::min(
          {distance[i - 1][j] + 1, distance[i][j - 1] + 1, distance[i - 1][j - 1] + change});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) here = std::min(here, distance[i - 2][j - 2] + 1);
    }
  }
  return distance[from.size()][to.size()];
}

std::string nearest(std::string_view typed, std::span<const std::string> known) {
  const auto best = std::ranges::min_element(
      known, {}, [typed](const std::string& word) { return edit_distance(typed, word); });
  if (best == known.end()) return "";
  const std::size_t allowed = std::max<std::size_t>(1, best->size() / 3);
  return edit_distance(typed, *best) <= allowed ? *best : "";
}

}  // namespace leasehold

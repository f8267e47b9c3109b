/// The items of a step sorted by expert, for backends that work expert by expert.
///
/// Threads: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/expects.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

struct ExpertItems {
  std::span<const std::uint32_t> items;  ///< All items, grouped by expert, ascending in each group.
  std::span<const std::uint32_t> first;  ///< [n_experts + 1]: start of each expert's group.
};

class ExpertGroups {
 public:
  /// Reserves memory for `max_items` items, so that sort() does not allocate.
  ExpertGroups(std::uint32_t n_experts, std::size_t max_items) : first_(n_experts + 1) {
    items_.reserve(max_items);
  }

  /// Sorts items by their expert with a stable counting sort, so items ascend in each group. The
  /// returned spans are valid until the next call.
  ExpertItems sort(const ExpertMatmulArgs& args) {
    std::ranges::fill(first_, 0u);
    for (std::uint32_t i = 0; i < args.n_items; ++i) {
      const std::uint32_t expert = args.expert_of(i);
      expects(expert + 1 < first_.size(), "a chosen expert is one of the model's");
      ++first_[expert + 1];
    }
    for (std::size_t e = 1; e < first_.size(); ++e) first_[e] += first_[e - 1];
    items_.resize(args.n_items);
    for (std::uint32_t i = args.n_items; i-- > 0;) items_[--first_[args.expert_of(i) + 1]] = i;
    // first_[e + 1] has moved from the end of group e to its start; shift the starts one index
    // left.
    std::shift_left(first_.begin(), first_.end(), 1);
    first_.back() = static_cast<std::uint32_t>(items_.size());
    return {.items = items_, .first = first_};
  }

 private:
  std::vector<std::uint32_t> items_;  // [n_items]
  std::vector<std::uint32_t> first_;  // [n_experts + 1]
};

}  // namespace leasehold

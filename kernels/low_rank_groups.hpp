/// The rows of a low-rank launch, grouped by adapter. C++20-clean.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/sequence_rows.hpp"

namespace leasehold {

/// Sequences that share an adapter, so that its matrices are read once for all their rows. Each of
/// these rows is live or not, as its sequence is.
class LowRankGroups {
 public:
  struct Group {
    const LowRankMatrix* adapter;         ///< [n_slots]
    std::span<const std::uint32_t> rows;  ///< Indices of rows, ascending.
  };

  explicit LowRankGroups(std::uint32_t max_rows) : rows_(max_rows) {}

  /// Groups the rows of a launch. Rows without an adapter are in no group.
  std::span<const Group> begin(std::span<const RowRef> rows, AdapterTable adapters) {
    const SequenceList sequences(rows);
    n_ = 0;
    for (const SequenceRows& sequence : sequences.all()) add(adapters[sequence.sequence]);
    std::uint32_t* at = rows_.data();
    for (Group& group : std::span(groups_).first(n_)) {
      std::uint32_t* const first = at;
      for (const SequenceRows& sequence : sequences.all())
        if (adapters[sequence.sequence] == group.adapter)
          for (std::uint32_t r = 0; r < sequence.count; ++r) *at++ = sequence.first_row + r;
      group.rows = {first, at};
    }
    return std::span(groups_).first(n_);
  }

 private:
  void add(const LowRankMatrix* adapter) {
    if (adapter == nullptr) return;
    for (const Group& group : std::span(groups_).first(n_))
      if (group.adapter == adapter) return;
    groups_[n_++] = {adapter, {}};
  }

  std::vector<std::uint32_t> rows_;  // of all groups
  std::array<Group, kMaxStepSequences> groups_;
  std::uint32_t n_ = 0;
};

}  // namespace leasehold

/// How many rows sequences under scavenger leases get in a step beside others.
///
/// A step without other rows is theirs. Beside others they get one row for each kRowsOfOthers rows
/// that the others have computed, so they cost them at most about 1 / kRowsOfOthers of their speed:
/// a row takes no longer beside others than alone. What is not used is kept, up to kMostRows.
///
/// Pure. Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leasehold {

class ScavengerShare {
 public:
  static constexpr std::uint64_t kRowsOfOthers = 40;
  static constexpr std::uint64_t kMostRows = 16;

  /// The rows that scavengers may have in the next step.
  std::uint32_t rows() const { return static_cast<std::uint32_t>(credit_ / kRowsOfOthers); }
  void note_others(std::uint64_t rows) {
    credit_ = std::min(credit_ + rows, kMostRows * kRowsOfOthers);
  }
  /// Charges rows of scavengers, whether they were computed alone or beside others.
  void note_scavengers(std::uint64_t rows) { credit_ -= std::min(credit_, rows * kRowsOfOthers); }

 private:
  std::uint64_t credit_ = 0;
};

}  // namespace leasehold

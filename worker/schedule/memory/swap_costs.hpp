/// Decides from measured times whether a preempted sequence is swapped out or dropped.
///
///   swap: c · (bytes copied out + bytes copied in)   c: time to copy a byte
///   drop: r · (rows to compute again)                r: time of a prompt row (PrefillLimit)
///
/// c is a moving average that starts at kFirstBytesPerSecond. A slower rate moves back towards that
/// start with each dropped sequence, so that a few stalled copies do not disable swapping for good.
/// Without r the sequence is dropped.
///
/// Pure: durations are arguments. Threads: one.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.hpp"

namespace leasehold {

/// The work of swapping a sequence and of dropping it.
struct SwapWork {
  std::uint64_t copied_bytes = 0;    ///< Bytes copied out and in.
  std::uint64_t rows_to_repeat = 0;  ///< Work of these rows (row_work.hpp).
};

class SwapCosts {
 public:
  static constexpr double kFirstBytesPerSecond = 1 << 30;

  /// `first_bytes_per_second`: the initial rate, which depends on the kind of memory.
  explicit SwapCosts(double first_bytes_per_second = kFirstBytesPerSecond)
      : first_byte_ns_(1e9 / first_bytes_per_second), byte_ns_(first_byte_ns_) {}

  /// `row_ns`: r.
  bool is_swap_cheaper(const SwapWork& work, std::optional<double> row_ns) const;

  /// Records the duration of finished copies. Zero is ignored.
  void note_copy(Duration copying, std::uint64_t bytes);
  /// Records that a sequence was dropped because that was cheaper.
  void note_dropped();

 private:
  double first_byte_ns_;
  double byte_ns_;
};

}  // namespace leasehold

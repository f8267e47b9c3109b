/// Decides by measured times whether a preempted sequence is swapped out or dropped.
///
///   swap: c · (bytes copied out + bytes copied in)   c: time to copy a byte
///   drop: r · (rows to compute again)                r: time of a prompt row (PrefillLimit)
///
/// c is a moving average that starts at kFirstBytesPerSecond. A slower one moves back towards that
/// start with each sequence that is dropped, so that stalled copies do not end swapping for ever.
/// Without r the sequence is dropped.
///
/// Pure: durations are arguments. Threads: one.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.hpp"

namespace leasehold {

/// What one of the two ways costs each.
struct SwapWork {
  std::uint64_t copied_bytes = 0;    ///< Out and in.
  std::uint64_t rows_to_repeat = 0;  ///< Their work (row_work.hpp).
};

class SwapCosts {
 public:
  static constexpr double kFirstBytesPerSecond = 1 << 30;

  /// Starts with another rate, for copies to another kind of memory.
  explicit SwapCosts(double first_bytes_per_second = kFirstBytesPerSecond)
      : first_byte_ns_(1e9 / first_bytes_per_second), byte_ns_(first_byte_ns_) {}

  /// `row_ns`: r.
  bool is_swap_cheaper(const SwapWork& work, std::optional<double> row_ns) const;

  /// The duration of copies that were made. Zero says nothing.
  void note_copy(Duration copying, std::uint64_t bytes);
  /// A sequence was dropped because that was cheaper.
  void note_dropped();

 private:
  double first_byte_ns_;
  double byte_ns_;
};

}  // namespace leasehold

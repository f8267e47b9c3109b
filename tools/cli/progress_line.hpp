/// A progress line on stderr for work that takes more than a second, when a person is looking.
#pragma once

#include <chrono>
#include <cstdint>

namespace leasehold::cli {

/// Threads: one. Ends its line when destroyed.
class ProgressLine {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  ProgressLine(TimePoint began, bool is_terminal) : last_(began), is_terminal_(is_terminal) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  /// Draws when a second has passed since the start, then ten times a second.
  void update(std::uint64_t done, std::uint64_t total, TimePoint now);

 private:
  TimePoint last_;  // the start, then the last time the line was drawn
  bool is_terminal_;
  bool drawn_ = false;
};

}  // namespace leasehold::cli

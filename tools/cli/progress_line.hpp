/// A progress bar on stderr for work of more than a second, if stderr is a terminal.
#pragma once

#include <chrono>
#include <cstdint>

namespace leasehold::cli {

/// Threads: one at a time. The destructor ends the line.
class ProgressLine {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  ProgressLine(TimePoint began, bool is_terminal) : last_(began), is_terminal_(is_terminal) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  /// Draws `done` of `total`: first after one second, then at most ten times a second.
  void update(std::uint64_t done, std::uint64_t total, TimePoint now);

 private:
  TimePoint last_;  // when the line was last drawn; at first the start
  bool is_terminal_;
  bool drawn_ = false;
};

}  // namespace leasehold::cli

/// A progress bar, or a line of text, on stderr for work of more than a second, if stderr is a
/// terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

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
  /// Draws the text in the same way, in place of the earlier one.
  void update(std::string_view text, TimePoint now);

 private:
  bool is_due(TimePoint now);

  TimePoint last_;  // when the line was last drawn; at first the start
  bool is_terminal_;
  bool drawn_ = false;
  std::size_t width_ = 0;  // of the text
};

}  // namespace leasehold::cli

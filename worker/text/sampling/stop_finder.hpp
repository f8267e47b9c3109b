/// Finds stop strings in a text that arrives in pieces.
///
/// The text ends at the first byte that completes a stop string; of several that end there the
/// longest counts. The finder passes on the text before the stop string, but not the stop string.
/// It holds back an end of the text that may become a stop string, at most the length of the
/// longest one.
///
/// Lifetime: a value. Threads: one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leasehold {

class StopFinder {
 public:
  StopFinder() = default;
  /// None of `stops` is empty.
  explicit StopFinder(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// Returns the text that is certain now. Returns nothing after a stop string was found.
  std::string push(std::string_view text);

  /// Returns the text held back, for the end of the text; empty after a stop string was found.
  std::string finish();

  bool found() const { return found_; }

 private:
  /// Returns the start of the first completed stop string; npos if there is none.
  std::size_t first_stop() const;
  std::size_t partial_stop_length() const;

  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace leasehold

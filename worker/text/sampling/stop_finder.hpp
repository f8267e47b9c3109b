/// Finds stop strings in a text that comes piece by piece.
///
/// The text ends at the first stop string to become complete, byte by byte, however the pieces are
/// cut; of several that end at the same byte the longest counts. What comes before it is handed on,
/// it itself is not, and the end of a text that may still become one is held back. Nothing longer
/// than the longest stop string ever is.
///
/// Lifetime: independent of everything. Threads: one.
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

  /// The text that is certain now. Nothing more comes once a stop string was found.
  std::string push(std::string_view text);

  /// What was held back, for when the text is over; nothing when a stop string ended it.
  std::string finish();

  bool found() const { return found_; }

 private:
  /// Where the first stop string to become complete begins; npos: there is none.
  std::size_t first_stop() const;
  std::size_t partial_stop_start() const;

  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace leasehold

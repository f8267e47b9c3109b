/// Finds stop strings in a text that arrives in pieces.
///
/// The text ends at the first byte that completes a stop string; of several that end there the
/// longest counts. The finder passes on the text before the stop string, and the stop string only
/// if stops are included. It holds back an end of the text that may become a stop string, at most
/// the length of the longest one.
///
/// Lifetime: a value. Threads: one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold {

class StopFinder {
 public:
  StopFinder() = default;
  /// None of `stops` is empty.
  explicit StopFinder(std::vector<std::string> stops, bool are_included = false)
      : stops_(std::move(stops)), are_included_(are_included) {}

  /// Returns the text that is certain now. Returns nothing after a stop string was found. If
  /// `may_stop` is false, a stop string that `text` completes does not end the text.
  std::string push(std::string_view text, bool may_stop = true);

  /// Call at the end of the text. Returns the text held back; empty after a stop string was found.
  std::string finish();

  bool found() const { return found_; }

 private:
  struct Place {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  /// The first stop string that ends after the first `known` bytes.
  std::optional<Place> first_stop(std::size_t known) const;
  std::size_t partial_stop_length() const;

  std::vector<std::string> stops_;
  bool are_included_ = false;
  std::string held_;
  bool found_ = false;
};

}  // namespace leasehold

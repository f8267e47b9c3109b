#include "worker/text/sampling/stop_finder.hpp"

#include <algorithm>
#include <utility>

namespace leasehold {

std::string StopFinder::push(std::string_view text) {
  if (found_) return {};
  held_ += text;
  const std::size_t stop = first_stop();
  found_ = stop != std::string::npos;
  const std::size_t certain = found_ ? stop : held_.size() - partial_stop_length();
  std::string released = held_.substr(0, certain);
  held_ = found_ ? std::string() : held_.substr(certain);
  return released;
}

std::string StopFinder::finish() {
  return std::exchange(held_, {});
}

std::size_t StopFinder::first_stop() const {
  std::size_t begin = std::string::npos;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const std::size_t its_end = at + stop.size();
    if (its_end > end || (its_end == end && at > begin)) continue;
    begin = at;
    end = its_end;
  }
  return begin;
}

/// The length of the longest suffix of the text that is a prefix of a stop string.
std::size_t StopFinder::partial_stop_length() const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) longest = n;
    }
  }
  return longest;
}

}  // namespace leasehold

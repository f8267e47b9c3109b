#include "worker/text/sampling/stop_finder.hpp"

#include <algorithm>
#include <utility>

namespace leasehold {

std::string StopFinder::push(std::string_view text, bool may_stop) {
  if (found_) return {};
  const std::size_t known = held_.size();
  held_ += text;
  const std::optional<Place> stop = may_stop ? first_stop(known) : std::nullopt;
  found_ = stop.has_value();
  std::size_t certain = 0;
  if (stop) certain = are_included_ ? stop->end : stop->begin;
  if (!stop) certain = held_.size() - partial_stop_length();
  std::string released = held_.substr(0, certain);
  held_ = found_ ? std::string() : held_.substr(certain);
  return released;
}

std::string StopFinder::finish() {
  return std::exchange(held_, {});
}

std::optional<StopFinder::Place> StopFinder::first_stop(std::size_t known) const {
  std::optional<Place> first;
  for (const std::string& stop : stops_) {
    const std::size_t from = known >= stop.size() ? known - stop.size() + 1 : 0;
    const std::size_t at = held_.find(stop, from);
    if (at == std::string::npos) continue;
    const Place place{.begin = at, .end = at + stop.size()};
    const bool is_first =
        !first || place.end < first->end || (place.end == first->end && place.begin < first->begin);
    if (is_first) first = place;
  }
  return first;
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

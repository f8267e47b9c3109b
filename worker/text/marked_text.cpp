#include "worker/text/marked_text.hpp"

#include <algorithm>
#include <utility>

namespace leasehold {

MarkedText::MarkedText(std::string bytes, TextOrigin origin) : bytes_(std::move(bytes)) {
  if (origin == TextOrigin::Template) mark(0, bytes_.size());
}

/// The ranges that contain any byte from `begin` up to `end`.
std::span<const MarkedText::Range> MarkedText::ranges_over(std::size_t begin,
                                                           std::size_t end) const {
  const auto first = std::ranges::upper_bound(from_template_, begin, {}, &Range::end);
  const auto last = std::ranges::lower_bound(first, from_template_.end(), end, {}, &Range::begin);
  return {first, last};
}

TextOrigin MarkedText::origin_of(std::string_view part) const {
  const auto begin = static_cast<std::size_t>(part.data() - bytes_.data());
  const std::size_t end = begin + part.size();
  const auto ranges = ranges_over(begin, end);
  const bool is_covered =
      ranges.size() == 1 && ranges.front().begin <= begin && ranges.front().end >= end;
  return is_covered ? TextOrigin::Template : TextOrigin::Client;
}

void MarkedText::mark(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!from_template_.empty() && from_template_.back().end == begin) {
    from_template_.back().end = end;
  } else {
    from_template_.push_back({begin, end});
  }
}

void MarkedText::append(std::string_view bytes, TextOrigin origin) {
  const std::size_t begin = bytes_.size();
  bytes_ += bytes;
  if (origin == TextOrigin::Template) mark(begin, bytes_.size());
}

void MarkedText::append_part(const MarkedText& other, std::string_view part) {
  const auto begin = static_cast<std::size_t>(part.data() - other.bytes_.data());
  const std::size_t end = begin + part.size(), at = bytes_.size();
  bytes_ += part;
  for (const Range& range : other.ranges_over(begin, end))
    mark(at + std::max(range.begin, begin) - begin, at + std::min(range.end, end) - begin);
}

MarkedText MarkedText::part(std::string_view part) const {
  MarkedText out;
  out.append_part(*this, part);
  return out;
}

}  // namespace leasehold

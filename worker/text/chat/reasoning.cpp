#include "worker/text/chat/reasoning.hpp"

#include <utility>

#include "worker/text/chat/text_marker.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kBegin = "<think>";
constexpr std::string_view kEnd = "</think>";

}  // namespace

/// Returns true if the state changed, so that the held text must be read again.
bool ReasoningParser::step(Output& out) {
  const auto first = held_.find_first_not_of(kWhitespace);
  switch (state_) {
    case State::Start: {
      if (first == std::string::npos && held_.size() <= kMaxHeldBytes) return false;
      const std::string_view text = std::string_view(held_).substr(std::min(first, held_.size()));
      if (!text.empty() && text.size() < kBegin.size() && kBegin.starts_with(text)) return false;
      const bool thinks = text.starts_with(kBegin);
      if (thinks) held_.erase(0, first + kBegin.size());
      state_ = thinks ? State::Inside : State::Text;
      return true;
    }
    case State::Inside: {
      if (!has_reasoned_) held_.erase(0, std::min(first, held_.size()));
      const std::string_view markers[] = {kEnd};
      const MarkerSearch search = find_marker(held_, markers);
      has_reasoned_ = has_reasoned_ || search.settled > 0;
      out.reasoning += held_.substr(0, search.settled);
      held_.erase(0, search.marker ? search.marker_at + kEnd.size() : search.settled);
      if (search.marker) state_ = State::After;
      return search.marker.has_value();
    }
    case State::After:
      held_.erase(0, std::min(first, held_.size()));
      if (!held_.empty()) state_ = State::Text;
      return !held_.empty();
    case State::Text:
      out.text += std::exchange(held_, {});
      return false;
  }
  return false;
}

ReasoningParser::Output ReasoningParser::push(std::string_view piece) {
  held_ += piece;
  Output out;
  while (step(out)) {
  }
  return out;
}

ReasoningParser::Output ReasoningParser::finish() {
  Output out;
  std::string rest = std::exchange(held_, {});
  (state_ == State::Inside ? out.reasoning : out.text) = std::move(rest);
  return out;
}

}  // namespace leasehold

#include "worker/text/chat/reasoning.hpp"

#include <utility>

#include "worker/text/chat/text_marker.hpp"

namespace leasehold {
namespace {

struct ThoughtForm {
  std::string_view begin, end;
};

constexpr ThoughtForm kThoughtForms[] = {{"<think>", "</think>"},
                                         {"[THINK]", "[/THINK]"},
                                         {"<|START_THINKING|>", "<|END_THINKING|>"},
                                         {"<|channel>thought", "<channel|>"}};
constexpr std::string_view kThoughtEnds[] = {kThoughtForms[0].end, kThoughtForms[1].end,
                                             kThoughtForms[2].end, kThoughtForms[3].end};
constexpr std::string_view kThoughtTokens[] = {
    "<think>",          "</think>",   "[THINK]",   "[/THINK]", "<|START_THINKING|>",
    "<|END_THINKING|>", "<|channel>", "<channel|>"};

}  // namespace

bool ends_inside_reasoning(std::string_view prompt) {
  prompt = prompt.substr(0, prompt.find_last_not_of(kWhitespace) + 1);
  return std::ranges::any_of(kThoughtForms,
                             [&](const ThoughtForm& form) { return prompt.ends_with(form.begin); });
}

std::span<const std::string_view> reasoning_tokens() {
  return kThoughtTokens;
}

/// Decides whether the text begins with reasoning.
bool ReasoningParser::step_start() {
  const auto first = held_.find_first_not_of(kWhitespace);
  if (first == std::string::npos && held_.size() <= kMaxHeldBytes) return false;
  const std::string_view text = std::string_view(held_).substr(std::min(first, held_.size()));
  const auto may_become = [&](const ThoughtForm& form) {
    return !text.empty() && text.size() < form.begin.size() && form.begin.starts_with(text);
  };
  if (std::ranges::any_of(kThoughtForms, may_become)) return false;
  const auto* form = std::ranges::find_if(
      kThoughtForms, [&](const ThoughtForm& each) { return text.starts_with(each.begin); });
  state_ = form == std::end(kThoughtForms) ? State::Text : State::Inside;
  if (form == std::end(kThoughtForms)) return true;
  end_ = form->end;
  held_.erase(0, first + form->begin.size());
  return true;
}

bool ReasoningParser::step_inside(Output& out) {
  if (!has_reasoned_) held_.erase(0, std::min(held_.find_first_not_of(kWhitespace), held_.size()));
  const std::span<const std::string_view> ends =
      end_.empty() ? std::span<const std::string_view>(kThoughtEnds) : std::span(&end_, 1);
  const MarkerSearch search = find_marker(held_, ends);
  has_reasoned_ = has_reasoned_ || search.settled > 0;
  out.reasoning += held_.substr(0, search.settled);
  held_.erase(0, search.marker ? search.marker_at + ends[*search.marker].size() : search.settled);
  if (search.marker) state_ = State::After;
  return search.marker.has_value();
}

/// Returns true if the state changed, so that the held text must be read again.
bool ReasoningParser::step(Output& out) {
  switch (state_) {
    case State::Start:
      return step_start();
    case State::Inside:
      return step_inside(out);
    case State::After:
      held_.erase(0, std::min(held_.find_first_not_of(kWhitespace), held_.size()));
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

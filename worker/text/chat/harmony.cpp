#include "worker/text/chat/harmony.hpp"

#include <algorithm>
#include <optional>

#include "worker/text/chat/text_marker.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kRecipient = "to=";
constexpr std::string_view kFunctions = "functions.";
/// What a header can begin with: the prompt ends with "<|start|>assistant".
constexpr std::string_view kHeaders[] = {kStart, kChannel, kRecipient};
/// What ends a body. The first two begin the next header.
constexpr std::string_view kEnds[] = {kStart, kChannel, "<|end|>", "<|call|>", "<|return|>"};
constexpr std::size_t kBeginsHeader = 2;

/// The word after a marker in a header; empty if the header has no such marker.
std::string_view word_after(std::string_view header, std::string_view marker) {
  const auto at = header.find(marker);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = header.substr(at + marker.size());
  return rest.substr(0, rest.find_first_of(" \t\r\n<"));
}

}  // namespace

/// Waits until it is certain what follows: a header, or text without one.
bool HarmonyParser::step_between() {
  const auto first = held_.find_first_not_of(kWhitespace);
  if (first == std::string::npos && held_.size() <= kMaxHeldBytes) return false;
  const std::string_view rest = std::string_view(held_).substr(std::min(first, held_.size()));
  const auto may_begin = [&](std::string_view header) {
    return !rest.empty() && rest.size() < header.size() && header.starts_with(rest);
  };
  const auto begins = [&](std::string_view header) { return rest.starts_with(header); };
  if (std::ranges::any_of(kHeaders, begins)) {
    state_ = State::Header;
    return true;
  }
  if (std::ranges::any_of(kHeaders, may_begin)) return false;
  begin_body({});
  return true;
}

bool HarmonyParser::step_header() {
  const auto end = held_.find(kMessage);
  const std::size_t least_end =
      end != std::string::npos ? end : held_.size() - partial_marker_size(held_, kMessage);
  if (least_end > kMaxHeaderBytes) {
    held_.erase(0, held_.find_first_not_of(kWhitespace));
    for (const std::string_view marker : {kStart, kChannel})  // otherwise it begins a header again
      if (held_.starts_with(marker)) held_.erase(0, marker.size());
    begin_body({});
    return true;
  }
  if (end == std::string::npos) return false;
  const std::string header = held_.substr(0, end);
  held_.erase(0, end + kMessage.size());
  begin_body(header);
  return true;
}

void HarmonyParser::begin_body(std::string_view header) {
  state_ = State::Body;
  is_new_body_ = true;
  arguments_.clear();
  std::string_view tool = word_after(header, kRecipient);
  const bool is_function = tool.starts_with(kFunctions);
  if (is_function) tool.remove_prefix(kFunctions.size());
  const bool is_known = tools_.empty() || std::ranges::find(tools_, tool) != tools_.end();
  tool_ = tool;
  if (is_function && !tool.empty() && is_known)
    body_ = Body::Call;
  else
    body_ = word_after(header, kChannel) == "analysis" ? Body::Reasoning : Body::Text;
}

/// Adds a part of the body. A call is kept until it is complete.
void HarmonyParser::add(std::string_view part, Output& out) {
  if (part.empty()) return;
  if (body_ == Body::Call) {
    arguments_ += part;
    if (arguments_.size() <= ToolCallParser::kMaxCallBytes) return;
    body_ = Body::Text;
    return add(std::exchange(arguments_, {}), out);
  }
  const bool is_text = body_ == Body::Text;
  std::string& to = is_text ? out.text : out.reasoning;
  bool& has_some = is_text ? has_text_ : has_reasoning_;
  if (is_new_body_ && has_some) to += "\n\n";
  is_new_body_ = false;
  has_some = true;
  to += part;
}

void HarmonyParser::end_body(Output& out) {
  state_ = State::Between;
  if (body_ != Body::Call) return;
  const std::string arguments = arguments_.find_first_not_of(kWhitespace) == std::string::npos
                                    ? "{}"
                                    : std::exchange(arguments_, {});
  if (auto call = named_call(tool_, arguments)) return out.calls.push_back(*std::move(call));
  body_ = Body::Text;
  add(arguments, out);
}

bool HarmonyParser::step_body(Output& out) {
  const MarkerSearch search = find_marker(held_, kEnds);
  add(std::string_view(held_).substr(0, search.settled), out);
  if (!search.marker) {
    held_.erase(0, search.settled);
    return false;
  }
  const bool begins_header = *search.marker < kBeginsHeader;
  held_.erase(0, search.marker_at + (begins_header ? 0 : kEnds[*search.marker].size()));
  end_body(out);
  return true;
}

bool HarmonyParser::step(Output& out) {
  switch (state_) {
    case State::Between:
      return step_between();
    case State::Header:
      return step_header();
    case State::Body:
      return step_body(out);
  }
  return false;
}

HarmonyParser::Output HarmonyParser::push(std::string_view piece) {
  held_ += piece;
  Output out;
  while (step(out)) {
  }
  return out;
}

HarmonyParser::Output HarmonyParser::finish() {
  Output out;
  const std::string rest = std::exchange(held_, {});
  const bool is_text =
      state_ == State::Between && rest.find_first_not_of(kWhitespace) != std::string::npos;
  if (is_text) begin_body({});
  if (state_ == State::Body) {
    add(rest, out);
    end_body(out);
  }
  state_ = State::Between;
  return out;
}

}  // namespace leasehold

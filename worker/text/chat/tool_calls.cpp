#include "worker/text/chat/tool_calls.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "worker/text/chat/text_marker.hpp"

namespace leasehold {
namespace {

using Json = nlohmann::ordered_json;  // arguments keep their order

constexpr std::string_view kHermes = "<tool_call>";
constexpr std::string_view kHermesEnd = "</tool_call>";
constexpr std::string_view kMistral = "[TOOL_CALLS]";
constexpr std::string_view kLlama = "<|python_tag|>";
constexpr std::string_view kMarkers[] = {kHermes, kMistral, kLlama};
constexpr int kMaxCallDepth = 64;

/// Null for a text that is not JSON, or that nests more levels than callers may recurse.
Json parse_shallow(std::string_view text) {
  bool too_deep = false;
  const auto check = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxCallDepth) too_deep = true;
    return !too_deep;
  };
  Json json = Json::parse(text, check, false);
  return too_deep || json.is_discarded() ? Json() : json;
}

std::optional<ToolCall> call_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string() || name->get_ref<const std::string&>().empty())
    return std::nullopt;
  auto arguments = json.find("arguments");
  if (arguments == json.end()) arguments = json.find("parameters");
  if (arguments == json.end()) return std::nullopt;
  if (arguments->is_string()) {  // the object is sent as text
    if (!parse_shallow(arguments->get_ref<const std::string&>()).is_object()) return std::nullopt;
    return ToolCall{.name = *name, .arguments = *arguments};
  }
  if (!arguments->is_object()) return std::nullopt;
  return ToolCall{
      .name = *name,
      .arguments = arguments->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

bool begins_value(char c) {
  return c == '{' || c == '[';
}

}  // namespace

std::optional<std::vector<ToolCall>> ToolCallParser::calls_of(std::string_view text) {
  const Json json = parse_shallow(text);
  std::vector<ToolCall> calls;
  const auto add = [&](const Json& one) {
    auto call = call_of(one);
    if (!call) return false;
    calls.push_back(*std::move(call));
    return true;
  };
  if (!json.is_array()) return add(json) ? std::optional(std::move(calls)) : std::nullopt;
  if (json.empty() || !std::ranges::all_of(json, add)) return std::nullopt;
  return calls;
}

/// The calls in the scanned value. Nothing if a part of the value is not a call of a known tool.
std::optional<std::vector<ToolCall>> ToolCallParser::held_calls() const {
  auto calls = calls_of(std::string_view(held_).substr(value_at_, scanned_ - value_at_));
  const auto is_known = [&](const ToolCall& call) {
    return tools_.empty() || std::ranges::find(tools_, call.name) != tools_.end();
  };
  return calls && std::ranges::all_of(*calls, is_known) ? std::move(calls) : std::nullopt;
}

void ToolCallParser::begin_value(std::size_t at, bool is_hermes) {
  state_ = State::Value;
  is_hermes_ = is_hermes;
  value_at_ = scanned_ = at;
  depth_ = 0;
  in_string_ = is_escaped_ = false;
}

/// Turns the first `bytes` of the held text, which cannot be read as a call, into text.
void ToolCallParser::give_up(Output& out, std::size_t bytes) {
  out.text += held_.substr(0, bytes);
  held_.erase(0, bytes);
  state_ = State::Text;
}

bool ToolCallParser::step_text(Output& out) {
  const auto first = held_.find_first_not_of(kWhitespace);
  if (state_ == State::Start) {
    if (first == std::string::npos && held_.size() <= kMaxHeldBytes) return false;
    state_ = State::Text;
    if (first != std::string::npos && held_[first] == '{') {
      begin_value(first, false);
      return true;
    }
  }
  const MarkerSearch search = find_marker(held_, kMarkers);
  out.text += held_.substr(0, search.settled);
  held_.erase(0, search.settled);
  if (!search.marker) return false;
  begin_value(search.marker_at - search.settled + kMarkers[*search.marker].size(),
              kMarkers[*search.marker] == kHermes);
  return true;
}

/// Scans up to the end of an object or array. Returns true at that end, at the size limit, or if
/// there is no value.
bool ToolCallParser::step_value() {
  for (; scanned_ < held_.size(); ++scanned_) {
    if (scanned_ - value_at_ > kMaxCallBytes) return true;
    const char c = held_[scanned_];
    if (in_string_) {
      if (!std::exchange(is_escaped_, !is_escaped_ && c == '\\') && c == '"') in_string_ = false;
      continue;
    }
    if (depth_ == 0 && !begins_value(c)) {
      if (kWhitespace.contains(c)) continue;
      state_ = State::Closing;  // step_closing finds no call and gives up
      return true;
    }
    in_string_ = c == '"';
    if (begins_value(c)) ++depth_;
    if ((c == '}' || c == ']') && --depth_ == 0) {
      ++scanned_;
      state_ = State::Closing;
      return true;
    }
  }
  return false;
}

bool ToolCallParser::step_closing(Output& out) {
  const std::string_view held = held_;
  std::size_t end = scanned_;
  if (is_hermes_) {
    const auto at = held.find_first_not_of(kWhitespace, scanned_);
    const std::string_view rest = at == std::string_view::npos ? "" : held.substr(at);
    const bool may_end = rest.size() < kHermesEnd.size() && kHermesEnd.starts_with(rest);
    if (may_end && held.size() - scanned_ <= kMaxHeldBytes) return false;
    if (rest.starts_with(kHermesEnd)) end = at + kHermesEnd.size();
  }
  auto calls = held_calls();
  if (!calls) {
    give_up(out, std::max(scanned_, value_at_));
    return true;
  }
  std::ranges::move(*calls, std::back_inserter(out.calls));
  held_.erase(0, end);
  state_ = State::Next;
  return true;
}

/// Handles the text after a call, where another call may follow without a marker.
bool ToolCallParser::step_next() {
  const auto at = held_.find_first_not_of(kWhitespace);
  if (at == std::string::npos) return false;
  if (is_hermes_ || held_[at] != ';') {
    state_ = State::Text;
    return true;
  }
  const auto next = held_.find_first_not_of(kWhitespace, at + 1);
  if (next == std::string::npos) return false;
  if (held_[next] != '{') {
    state_ = State::Text;
    return true;
  }
  begin_value(next, false);
  return true;
}

bool ToolCallParser::step(Output& out) {
  if (state_ == State::Value && scanned_ - value_at_ > kMaxCallBytes) {
    give_up(out, scanned_);
    return true;
  }
  switch (state_) {
    case State::Start:
    case State::Text:
      return step_text(out);
    case State::Value:
      return step_value();
    case State::Closing:
      return step_closing(out);
    case State::Next:
      return step_next();
  }
  return false;
}

ToolCallParser::Output ToolCallParser::push(std::string_view piece) {
  held_ += piece;
  Output out;
  while (step(out)) {
  }
  return out;
}

ToolCallParser::Output ToolCallParser::finish() {
  Output out;
  if (state_ == State::Closing) {
    if (auto calls = held_calls()) {
      out.calls = *std::move(calls);
      held_.clear();
    }
  }
  if (state_ == State::Next && held_.find_first_not_of(kWhitespace) == std::string::npos)
    held_.clear();
  out.text += std::exchange(held_, {});
  state_ = State::Text;
  return out;
}

}  // namespace leasehold

#include "worker/text/chat/tool_calls.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "worker/text/chat/text_marker.hpp"

namespace leasehold {
namespace {

struct Marker {
  const CallForm* form;
  bool is_section;
};

/// The markers that begin a section or a call.
struct Markers {
  std::vector<std::string_view> texts;
  std::vector<Marker> meanings;  // of the texts, in their order
};

const Markers& markers() {
  static const Markers all = [] {
    Markers found;
    for (const CallForm& form : call_forms())
      for (const bool is_section : {true, false}) {
        const std::string_view text = is_section ? form.section_begin : form.begin;
        if (text.empty()) continue;
        found.texts.push_back(text);
        found.meanings.push_back({&form, is_section});
      }
    return found;
  }();
  return all;
}

bool begins_value(char c) {
  return c == '{' || c == '[';
}

bool may_become(std::string_view text, std::string_view marker) {
  return text.size() < marker.size() && marker.starts_with(text);
}

/// The text from its first character that is not whitespace on.
std::string_view without_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kWhitespace), text.size()));
}

}  // namespace

/// Nothing if one of the calls is not of a known tool.
ToolCallParser::Calls ToolCallParser::known(Calls calls) const {
  const auto is_known = [&](const ToolCall& call) {
    return tools_.empty() ||
           std::ranges::find(tools_, call.name, &CalledTool::name) != tools_.end();
  };
  return calls && std::ranges::all_of(*calls, is_known) ? std::move(calls) : std::nullopt;
}

/// The calls in the scanned value. Nothing if a part of the value is not a call of a known tool.
ToolCallParser::Calls ToolCallParser::held_calls() const {
  const auto json = std::string_view(held_).substr(value_at_, scanned_ - value_at_);
  if (name_.empty()) return known(json_calls(json));
  auto call = named_call(name_, json);
  return call ? known(std::vector<ToolCall>{*std::move(call)}) : std::nullopt;
}

void ToolCallParser::begin_call(std::size_t at, const CallForm* form) {
  form_ = form;
  name_.clear();
  call_at_ = value_at_ = scanned_ = at;
  depth_ = 0;
  in_string_ = is_escaped_ = false;
  state_ = form == nullptr ? State::Value : State::Begun;
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
      begin_call(first, nullptr);
      return true;
    }
  }
  const MarkerSearch search = find_marker(held_, markers().texts);
  out.text += held_.substr(0, search.settled);
  held_.erase(0, search.settled);
  if (!search.marker) return false;
  const Marker& marker = markers().meanings[*search.marker];
  const std::size_t size = markers().texts[*search.marker].size();
  begin_call(search.marker_at - search.settled + size, marker.form);
  if (marker.is_section) state_ = State::Section;
  return true;
}

/// Handles the text after the marker of a section, up to that of its first call.
bool ToolCallParser::step_section(Output& out) {
  const std::string_view rest = without_blanks(std::string_view(held_).substr(call_at_));
  if (rest.starts_with(form_->begin)) {
    begin_call(held_.size() - rest.size() + form_->begin.size(), form_);
  } else if (may_become(rest, form_->begin) && held_.size() - call_at_ <= kMaxHeldBytes) {
    return false;
  } else {
    give_up(out, call_at_);
  }
  return true;
}

/// Decides whether JSON, a name or a body follows the marker of a call.
bool ToolCallParser::step_begun(Output& out) {
  const std::string_view begun = std::string_view(held_).substr(call_at_);
  const std::string_view rest = without_blanks(begun);
  if (rest.empty() && begun.size() <= kMaxHeldBytes) return false;
  if (form_->is_json && !rest.empty() && begins_value(rest.front())) {
    state_ = State::Value;
    return true;
  }
  if (form_->read != nullptr) {
    state_ = State::Body;
    return true;
  }
  const std::string_view mark = form_->name_end;
  const auto at = mark.empty() ? std::string_view::npos
                               : rest.substr(0, kMaxNameBytes + mark.size()).find(mark);
  if (at != std::string_view::npos) {
    name_ = rest.substr(0, std::min(at, rest.find("[CALL_ID]")));
    value_at_ = scanned_ = held_.size() - rest.size() + at + mark.size();
    state_ = State::Value;
    return true;
  }
  if (!mark.empty() && rest.size() < kMaxNameBytes + mark.size()) return false;
  give_up(out, call_at_);
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

/// Looks for the marker that ends a call whose end cannot be seen from its text.
bool ToolCallParser::step_body(Output& out) {
  const std::string_view held = held_;
  if (form_->may_be_call != nullptr && !form_->may_be_call(held.substr(call_at_))) {
    give_up(out, call_at_);
    return true;
  }
  const auto at = held.find(form_->end, scanned_);
  if (at != std::string_view::npos) {
    auto calls = known(form_->read(held.substr(call_at_, at - call_at_), tools_));
    scanned_ = at + form_->end.size();
    return finish_call(std::move(calls), scanned_, out);
  }
  scanned_ = std::max(call_at_, held.size() - std::min(held.size(), form_->end.size() - 1));
  if (held.size() - call_at_ <= kMaxCallBytes) return false;
  give_up(out, scanned_);
  return true;
}

bool ToolCallParser::step_closing(Output& out) {
  std::size_t end = scanned_;
  if (form_ != nullptr && !form_->end.empty()) {
    const std::string_view rest = without_blanks(std::string_view(held_).substr(scanned_));
    if (may_become(rest, form_->end) && held_.size() - scanned_ <= kMaxHeldBytes) return false;
    if (rest.starts_with(form_->end)) end = held_.size() - rest.size() + form_->end.size();
  }
  return finish_call(held_calls(), end, out);
}

/// Takes the calls of the first `end` bytes of the held text. Without calls, what was scanned stays
/// text. Always true.
bool ToolCallParser::finish_call(Calls calls, std::size_t end, Output& out) {
  if (!calls) {
    give_up(out, std::max(scanned_, value_at_));
    return true;
  }
  std::ranges::move(*calls, std::back_inserter(out.calls));
  held_.erase(0, end);
  state_ = State::Next;
  return true;
}

/// Handles the text after a call: the end of its section, or another call without a marker.
bool ToolCallParser::step_next() {
  const std::string_view rest = without_blanks(held_);
  if (rest.empty()) return false;
  if (form_ != nullptr && !form_->section_end.empty()) {
    if (may_become(rest, form_->section_end)) return false;
    if (rest.starts_with(form_->section_end)) {
      held_.erase(0, held_.size() - rest.size() + form_->section_end.size());
      state_ = State::Text;
      return true;
    }
  }
  const bool has_end = form_ != nullptr && !form_->end.empty();
  if (has_end || rest.front() != ';') {
    state_ = State::Text;
    return true;
  }
  const std::string_view next = without_blanks(rest.substr(1));
  if (next.empty()) return false;
  if (next.front() != '{') {
    state_ = State::Text;
    return true;
  }
  begin_call(held_.size() - next.size(), form_);
  state_ = State::Value;
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
    case State::Section:
      return step_section(out);
    case State::Begun:
      return step_begun(out);
    case State::Value:
      return step_value();
    case State::Body:
      return step_body(out);
    case State::Closing:
      return step_closing(out);
    case State::Next:
      return step_next();
  }
  return false;
}

ToolCallParser::Output ToolCallParser::push(std::string_view piece) {
  constexpr std::size_t kChunkBytes = 256;  // bounds what each step moves
  Output out;
  for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kChunkBytes))) {
    held_ += piece.substr(0, kChunkBytes);
    while (step(out)) {
    }
  }
  return out;
}

/// The calls in a text that ends before the marker of their end.
ToolCallParser::Calls ToolCallParser::cut_calls() const {
  if (state_ == State::Closing) return held_calls();
  if (state_ != State::Body) return std::nullopt;
  std::string_view body = std::string_view(held_).substr(call_at_);
  const std::size_t begun_end = partial_marker_size(body, form_->end);
  body.remove_suffix(begun_end);
  auto calls = known(form_->read(body, tools_));
  // Of some forms, a mere name may be prose.
  const bool is_name = calls && calls->front().arguments == "{}" && begun_end == 0;
  return form_->may_be_call != nullptr && is_name ? std::nullopt : std::move(calls);
}

ToolCallParser::Output ToolCallParser::finish() {
  Output out;
  const std::string_view rest = without_blanks(held_);
  const bool is_section_end =
      rest.empty() || (form_ != nullptr && form_->section_end.starts_with(rest));
  if (auto calls = cut_calls()) {
    out.calls = *std::move(calls);
    held_.clear();
  } else if (state_ == State::Next && is_section_end) {
    held_.clear();
  }
  out.text = std::exchange(held_, {});
  state_ = State::Text;
  return out;
}

}  // namespace leasehold

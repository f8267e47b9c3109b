#include "worker/http/api/choice_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace leasehold::http {
namespace {

/// The number of characters: counts the bytes that begin a UTF-8 character.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string echo_of(const wire::RequestSubmit& submit, const Tokenizer& tokenizer) {
  if (submit.prompt) return *submit.prompt;
  std::string text;
  for (const std::int32_t token : submit.prompt_tokens.value_or(std::vector<std::int32_t>{}))
    if (tokenizer.contains(token))
      text += tokenizer.piece(token);  // the worker refuses other tokens
  return text;
}

bool is_marker_token(std::string_view name) {
  const auto has_name = [&](std::span<const std::string_view> tokens) {
    return std::ranges::find(tokens, name) != tokens.end();
  };
  return has_name(call_tokens()) || has_name(reasoning_tokens());
}

/// Calls are named after the request and the choice, because the other ids of a choice differ when
/// another host continues its text.
std::string call_prefix(const ApiRequest& request, std::uint32_t choice) {
  const std::string& id = request.submit.request_id.value;
  return choice == 0 ? fmt::format("call_{}", id) : fmt::format("call_{}.{}", id, choice);
}

}  // namespace

// ---------------------------------------------------------------------------------------- markers

std::string MarkerNames::add(const wire::TokenEmitted& token) {
  constexpr std::string_view kHarmony[] = {"<|start|>",     "<|channel|>", "<|message|>",
                                           "<|constrain|>", "<|end|>",     "<|call|>",
                                           "<|return|>"};
  if (!tokenizer_->contains(token.token)) return place(token.text);
  const std::string decoded = decoder_.push(token.token);
  decoded_bytes_ += decoded.size();
  unsent_ += decoded;
  const std::string_view name = tokenizer_->text(token.token);
  const bool is_known = tokenizer_->has_harmony()
                            ? std::ranges::find(kHarmony, name) != std::end(kHarmony)
                            : is_marker_token(name);
  const bool is_marker = is_known && tokenizer_->piece(token.token).empty();
  if (is_marker) markers_.push_back({.name = std::string(name), .at = decoded_bytes_});
  return place(token.text);
}

/// Inserts each marker once the text before it has arrived. The worker holds back text that may
/// become a stop string.
std::string MarkerNames::place(std::string_view text) {
  unsent_.erase(0, text.size());
  std::string placed;
  while (!markers_.empty() && markers_.front().at <= received_bytes_ + text.size()) {
    const std::size_t before = markers_.front().at - std::min(markers_.front().at, received_bytes_);
    placed += text.substr(0, before);
    placed += markers_.front().name;
    text.remove_prefix(before);
    received_bytes_ += before;
    markers_.pop_front();
  }
  received_bytes_ += text.size();
  return placed.append(text);
}

std::string MarkerNames::end(std::string_view rest) {
  std::string last = place(rest);
  for (const Marker& marker : std::exchange(markers_, {})) last += marker.name;
  return last;
}

// ------------------------------------------------------------------------------------------- chat

ChatText::ChatText(const ApiRequest& request, std::uint32_t choice, const Tokenizer& tokenizer)
    : call_prefix_(call_prefix(request, choice)),
      tool_form_(request.tool_form),
      parallel_calls_(request.parallel_tool_calls),
      tool_name_(request.tool_name),
      markers_(tokenizer),
      reasoning_(request.begins_inside_reasoning),
      tool_calls_(request.called_tools) {
  if (!tokenizer.has_harmony()) return;
  std::vector<std::string> names;
  for (const CalledTool& tool : request.called_tools) names.push_back(tool.name);
  if (tool_form_ == ToolForm::None) names = {""};  // no name is one
  harmony_.emplace(std::move(names));
}

void ChatText::add(std::string_view text, ChoicePart& part) {
  if (is_forced()) return void(forced_ += text);
  if (harmony_) return add_harmony(harmony_->push(text), part);
  ReasoningParser::Output split = reasoning_.push(text);
  part.reasoning += split.reasoning;
  if (tool_form_ == ToolForm::None) return void(part.text += split.text);
  ToolCallParser::Output said = tool_calls_.push(split.text);
  part.text += said.text;
  add_calls(std::move(said.calls), part);
}

void ChatText::add_harmony(HarmonyParser::Output said, ChoicePart& part) {
  part.reasoning += said.reasoning;
  part.text += said.text;
  add_calls(std::move(said.calls), part);
}

/// Without parallel calls, drops every call after the first, as vLLM does.
void ChatText::add_calls(std::vector<ToolCall> calls, ChoicePart& part) {
  for (ToolCall& call : calls) {
    if (calls_ > 0 && !parallel_calls_) return;
    const std::size_t index = calls_++;
    part.calls.push_back(
        {.index = index, .id = fmt::format("{}_{}", call_prefix_, index), .call = std::move(call)});
  }
}

void ChatText::end(std::string_view rest, ChoicePart& part) {
  add(markers_.end(rest), part);
  if (is_forced()) return end_forced(part);
  if (harmony_) return add_harmony(harmony_->finish(), part);
  ReasoningParser::Output split = reasoning_.finish();
  part.reasoning += split.reasoning;
  if (tool_form_ == ToolForm::None) return void(part.text += split.text);
  for (ToolCallParser::Output said : {tool_calls_.push(split.text), tool_calls_.finish()}) {
    part.text += said.text;
    add_calls(std::move(said.calls), part);
  }
}

/// Of several stop strings that begin there, the shortest is completed first.
std::string ChatText::stop_of(std::span<const std::string> stops) const {
  std::string first;
  for (const std::string& stop : stops)
    if (markers_.unsent().starts_with(stop) && (first.empty() || stop.size() < first.size()))
      first = stop;
  return first;
}

void ChatText::end_forced(ChoicePart& part) {
  const bool is_call = tool_form_ == ToolForm::Call;
  const std::string json = is_call ? forced_
                                   : fmt::format(R"({{"name":{},"arguments":{}}})",
                                                 nlohmann::json(tool_name_).dump(), forced_);
  auto calls = json_calls(json);
  if (!calls) part.text += forced_;
  if (calls) add_calls(*std::move(calls), part);
}

// ----------------------------------------------------------------------------------------- choice

ChoiceText::ChoiceText(std::uint32_t index, const ApiRequest& request,
                       const wire::RequestSubmit& submit, const Tokenizer& tokenizer)
    : index_(index),
      tokenizer_(&tokenizer),
      echoes_logprobs_(request.echo && request.submit.sampling.logprobs),
      has_prompt_logprobs_(request.prompt_logprobs),
      stops_(submit.sampling.stop.all) {
  if (request.echo) echo_ = echo_of(submit, tokenizer);
  if (request.api != Api::Completions) chat_.emplace(request, index, tokenizer);
}

/// A token without a text, such as the end of a turn, is shown by its name.
TextLogprob ChoiceText::text_logprob(std::int32_t token, float logprob) const {
  if (!tokenizer_->contains(token)) return {.logprob = logprob};
  const std::string_view piece = tokenizer_->piece(token);
  return {.text = std::string(piece.empty() ? tokenizer_->text(token) : piece), .logprob = logprob};
}

void ChoiceText::add(wire::PromptLogprobs prompt) {
  std::ranges::move(prompt.tokens, std::back_inserter(prompt_));
}

ChoicePart ChoiceText::next_part() {
  ChoicePart part{.index = index_};
  if (echoes_logprobs_) add_echo(part);
  part.text = std::exchange(echo_, {});
  const auto prompt = std::exchange(prompt_, {});
  if (!has_prompt_logprobs_) return part;
  for (const wire::PromptToken& token : prompt) {
    PromptPosition& position = part.prompt_logprobs.emplace_back();
    if (!token.logprob) continue;
    position.push_back({.token = token.token, .text = text_logprob(token.token, *token.logprob)});
    for (std::size_t i = 0; i < token.top_logprobs.size(); ++i) {
      const wire::TokenLogprob& top = token.top_logprobs[i];
      if (top.token == token.token) position.front().rank = i + 1;
      if (top.token != token.token)
        position.push_back({top.token, text_logprob(top.token, top.logprob), i + 1});
    }
  }
  return part;
}

/// Adds the logprobs of the prompt. A tokenizer may put a space before the text, which then has no
/// place in the echoed text.
void ChoiceText::add_echo(ChoicePart& part) {
  std::string pieces;
  for (const wire::PromptToken& token : prompt_)
    if (tokenizer_->contains(token.token)) pieces += tokenizer_->piece(token.token);
  const std::size_t added = pieces.ends_with(echo_) ? characters(pieces) - characters(echo_) : 0;
  for (const wire::PromptToken& token : prompt_) {
    TokenLogprobs& logprobs = part.logprobs.emplace_back();
    logprobs.is_first = !token.logprob;
    logprobs.token = text_logprob(token.token, token.logprob.value_or(0.0f));
    logprobs.text_offset = text_offset_ - std::min(text_offset_, added);
    for (const wire::TokenLogprob& top : token.top_logprobs)
      logprobs.top.push_back(text_logprob(top.token, top.logprob));
    if (tokenizer_->contains(token.token))
      text_offset_ += characters(tokenizer_->piece(token.token));
  }
  if (!prompt_.empty()) text_offset_ = characters(echo_);
}

ChoicePart ChoiceText::add(const wire::TokenEmitted& token) {
  ChoicePart part = next_part();
  chat_ ? chat_->add(token, part) : void(part.text += token.text);
  if (!token.logprob) return part;
  TokenLogprobs logprobs{.token = text_logprob(token.token, *token.logprob),
                         .text_offset = text_offset_};
  for (const wire::TokenLogprob& top : token.top_logprobs)
    logprobs.top.push_back(text_logprob(top.token, top.logprob));
  text_offset_ += characters(logprobs.token.text);
  part.logprobs.push_back(std::move(logprobs));
  return part;
}

ChoicePart ChoiceText::end(std::string_view rest, std::string_view completion_reason) {
  ChoicePart part = next_part();
  chat_ ? chat_->end(rest, part) : void(part.text += rest);
  part.finish_reason = finish_reason(completion_reason);
  const bool is_call = chat_ && chat_->has_calls() && part.finish_reason == "stop";
  if (is_call) part.finish_reason = "tool_calls";
  if (chat_ && completion_reason == "StopSequence") part.stop = chat_->stop_of(stops_);
  return part;
}

}  // namespace leasehold::http

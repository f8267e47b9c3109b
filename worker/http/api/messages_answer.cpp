#include "worker/http/api/messages_answer.hpp"

#include <utility>

#include "ipc/http/message_errors.hpp"

namespace leasehold::http {

MessageWriter::MessageWriter(const ApiRequest& request, std::string model)
    : is_stream_(request.stream),
      omits_thinking_(request.omits_thinking),
      max_tokens_(request.submit.max_emitted_tokens),
      base_({{"id", answer_id(request)},
             {"type", "message"},
             {"role", "assistant"},
             {"model", std::move(model)}}),
      stop_({{"stop_reason", nullptr}, {"stop_sequence", nullptr}}) {}

ServerEvents MessageWriter::add(ChoicePart part, UsageCount so_far) {
  begin(so_far);
  if (!part.reasoning.empty()) {
    thinking_tokens_ = so_far.completion_tokens;
    add_text("thinking", "thinking", omits_thinking_ ? "" : part.reasoning);
  }
  if (!part.text.empty()) add_text("text", "text", part.text);
  for (const ApiToolCall& call : part.calls) add_call(call);
  if (!part.finish_reason.empty()) note_end(part, so_far);
  return std::exchange(events_, {});
}

ServerEvents MessageWriter::end(UsageCount usage) {
  emit("message_delta", {{"delta", stop_}, {"usage", usage_json(usage)}});
  emit("message_stop", Json::object());
  return std::exchange(events_, {});
}

ServerEvents MessageWriter::failed(const Error& error) {
  emit("error", Json::parse(message_error_body(error)));
  return std::exchange(events_, {});
}

ServerEvents MessageWriter::beat() {
  emit("ping", Json::object());
  return std::exchange(events_, {});
}

std::string MessageWriter::whole(UsageCount usage) {
  Json json = base_;
  json.update(stop_);
  json["content"] = content_;
  json["usage"] = usage_json(usage);
  return line_of(json);
}

void MessageWriter::begin(UsageCount so_far) {
  if (std::exchange(began_, true)) return;
  Json message = base_;
  message.update(stop_);
  message["content"] = Json::array();
  message["usage"] = usage_json(so_far);
  emit("message_start", {{"message", std::move(message)}});
}

/// Adds to the block of this type, whose text is in `member`.
void MessageWriter::add_text(const char* type, const char* member, const std::string& text) {
  if (!block_ || (*block_)["type"] != type) {
    Json block{{"type", type}, {member, ""}};
    if (block["type"] == "thinking") block["signature"] = "";
    open(std::move(block));
  }
  (*block_)[member].get_ref<std::string&>() += text;
  if (text.empty()) return;
  emit("content_block_delta",
       {{"index", content_.size()},
        {"delta", {{"type", type + std::string("_delta")}, {member, text}}}});
}

/// Ends the open block and begins this one.
void MessageWriter::open(Json block) {
  close();
  emit("content_block_start", {{"index", content_.size()}, {"content_block", block}});
  block_ = std::move(block);
}

void MessageWriter::close() {
  if (!block_) return;
  emit("content_block_stop", {{"index", content_.size()}});
  content_.push_back(*std::exchange(block_, std::nullopt));
}

void MessageWriter::add_call(const ApiToolCall& call) {
  const std::string& input = call.call.arguments;
  open(
      {{"type", "tool_use"}, {"id", call.id}, {"name", call.call.name}, {"input", Json::object()}});
  emit("content_block_delta", {{"index", content_.size()},
                               {"delta", {{"type", "input_json_delta"}, {"partial_json", input}}}});
  (*block_)["input"] = Json::parse(input);
  close();
}

/// A text that is cut off before `max_tokens` has filled the context, or its tenant's quota.
void MessageWriter::note_end(const ChoicePart& part, UsageCount usage) {
  if (content_.empty() && !block_) add_text("text", "text", "");
  close();
  if (part.finish_reason == "tool_calls") {
    stop_["stop_reason"] = "tool_use";
  } else if (part.finish_reason == "length") {
    const bool is_full = usage.completion_tokens < max_tokens_;
    stop_["stop_reason"] = is_full ? "model_context_window_exceeded" : "max_tokens";
  } else if (!part.stop.empty()) {
    stop_ = {{"stop_reason", "stop_sequence"}, {"stop_sequence", part.stop}};
  } else {
    stop_["stop_reason"] = "end_turn";
  }
}

void MessageWriter::emit(const char* type, Json fields) {
  if (!is_stream_) return;
  fields["type"] = type;
  events_.push_back({.data = line_of(fields), .name = type});
}

nlohmann::json MessageWriter::usage_json(UsageCount usage) const {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"thinking_tokens", thinking_tokens_}}}};
}

}  // namespace leasehold::http

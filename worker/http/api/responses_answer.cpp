#include "worker/http/api/responses_answer.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace leasehold::http {

ResponseWriter::ResponseWriter(const ApiRequest& request, std::string model,
                               std::int64_t created_unix_s)
    : is_stream_(request.stream),
      request_id_(request.submit.request_id.value),
      base_(Json::parse(request.repeated_fields, nullptr, false)) {
  if (!base_.is_object()) base_ = Json::object();
  base_["id"] = answer_id(request);
  base_["object"] = "response";
  base_["created_at"] = created_unix_s;
  base_["model"] = std::move(model);
  base_["error"] = nullptr;
  base_["incomplete_details"] = nullptr;
  base_["usage"] = nullptr;
}

ServerEvents ResponseWriter::add(ChoicePart part, UsageCount so_far) {
  begin();
  std::ranges::move(part.logprobs, std::back_inserter(new_logprobs_));
  if (!part.reasoning.empty()) {
    reasoning_tokens_ = so_far.completion_tokens;
    add_text(Kind::Thoughts, part.reasoning);
  }
  if (!part.text.empty()) add_text(Kind::Message, part.text);
  for (const ApiToolCall& call : part.calls) add_call(call);
  if (!part.finish_reason.empty()) {
    is_cut_off_ = part.finish_reason == "length";
    if (output_.empty() && kind_ == Kind::None) open(Kind::Message);  // one item at least
    close(is_cut_off_ ? "incomplete" : "completed");
  }
  return std::exchange(events_, {});
}

ServerEvents ResponseWriter::end(UsageCount usage) {
  emit(is_cut_off_ ? "response.incomplete" : "response.completed", {{"response", ended(usage)}});
  return std::exchange(events_, {});
}

ServerEvents ResponseWriter::failed(const Error& error) {
  begin();
  close("incomplete");
  Json json = response("failed");
  const Json body = Json::parse(error_body({error}))["error"];
  json["error"] = {{"code", body["code"]}, {"message", body["message"]}};
  emit("response.failed", {{"response", std::move(json)}});
  return std::exchange(events_, {});
}

std::string ResponseWriter::whole(UsageCount usage) {
  return line_of(ended(usage));
}

void ResponseWriter::begin() {
  if (std::exchange(began_, true)) return;
  emit("response.created", {{"response", response("in_progress")}});
  emit("response.in_progress", {{"response", response("in_progress")}});
}

void ResponseWriter::add_text(Kind kind, const std::string& text) {
  if (kind_ != kind) {
    close("completed");
    open(kind);
  }
  text_ += text;
  Json fields = place();
  fields["delta"] = text;
  if (kind == Kind::Message) {
    fields["logprobs"] = logprobs_json(new_logprobs_);
    std::ranges::move(new_logprobs_, std::back_inserter(logprobs_));
  }
  new_logprobs_.clear();
  emit(kind == Kind::Message ? "response.output_text.delta" : "response.reasoning_text.delta",
       std::move(fields));
}

void ResponseWriter::open(Kind kind) {
  kind_ = kind;
  id_ = new_id(kind == Kind::Message ? "msg" : "rs");
  Json empty = item("in_progress");
  empty["content"] = Json::array();
  emit("response.output_item.added", {{"output_index", output_.size()}, {"item", empty}});
  Json fields = place();
  fields["part"] = part();
  emit("response.content_part.added", std::move(fields));
}

/// Ends the open item, if there is one, with this status.
void ResponseWriter::close(std::string_view status) {
  if (kind_ == Kind::None) return;
  const bool is_message = kind_ == Kind::Message;
  Json fields = place();
  fields["text"] = text_;
  if (is_message) fields["logprobs"] = logprobs_json(logprobs_);
  emit(is_message ? "response.output_text.done" : "response.reasoning_text.done",
       std::move(fields));
  fields = place();
  fields["part"] = part();
  emit("response.content_part.done", std::move(fields));
  const Json done = item(status);
  emit("response.output_item.done", {{"output_index", output_.size()}, {"item", done}});
  output_.push_back(done);
  kind_ = Kind::None;
  text_.clear();
  logprobs_.clear();
}

/// A call is only known when it is complete, so all its events are sent together.
void ResponseWriter::add_call(const ApiToolCall& call) {
  close("completed");
  new_logprobs_.clear();
  const std::string id = new_id("fc");
  const std::size_t index = output_.size();
  Json item{{"id", id},           {"type", "function_call"}, {"status", "in_progress"},
            {"call_id", call.id}, {"name", call.call.name},  {"arguments", ""}};
  emit("response.output_item.added", {{"output_index", index}, {"item", item}});
  emit("response.function_call_arguments.delta",
       {{"output_index", index}, {"item_id", id}, {"delta", call.call.arguments}});
  emit("response.function_call_arguments.done", {{"output_index", index},
                                                 {"item_id", id},
                                                 {"name", call.call.name},
                                                 {"arguments", call.call.arguments}});
  item["status"] = "completed";
  item["arguments"] = call.call.arguments;
  emit("response.output_item.done", {{"output_index", index}, {"item", item}});
  output_.push_back(std::move(item));
}

void ResponseWriter::emit(std::string_view type, Json fields) {
  if (!is_stream_) return;
  fields["type"] = type;
  fields["sequence_number"] = sequence_++;
  events_.push_back({.data = line_of(fields), .name = std::string(type)});
}

/// The open item as JSON.
nlohmann::json ResponseWriter::item(std::string_view status) const {
  Json json{{"id", id_}, {"status", status}, {"content", Json::array({part()})}};
  if (kind_ == Kind::Message) {
    json["type"] = "message";
    json["role"] = "assistant";
  } else {
    json["type"] = "reasoning";
    json["summary"] = Json::array();
  }
  return json;
}

/// The only part of the open item as JSON.
nlohmann::json ResponseWriter::part() const {
  if (kind_ == Kind::Thoughts) return {{"type", "reasoning_text"}, {"text", text_}};
  return {{"type", "output_text"},
          {"text", text_},
          {"annotations", Json::array()},
          {"logprobs", logprobs_json(logprobs_)}};
}

/// The members of an event that identify the part of the open item.
nlohmann::json ResponseWriter::place() const {
  return {{"item_id", id_}, {"output_index", output_.size()}, {"content_index", 0}};
}

nlohmann::json ResponseWriter::response(std::string_view status) const {
  Json json = base_;
  json["status"] = status;
  json["output"] = output_;
  return json;
}

/// The response after its last item.
nlohmann::json ResponseWriter::ended(UsageCount usage) const {
  Json json = response(is_cut_off_ ? "incomplete" : "completed");
  if (is_cut_off_) json["incomplete_details"] = {{"reason", "max_output_tokens"}};
  json["usage"] = {{"input_tokens", usage.prompt_tokens},
                   {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
                   {"output_tokens", usage.completion_tokens},
                   {"output_tokens_details", {{"reasoning_tokens", reasoning_tokens_}}},
                   {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
  return json;
}

/// The id of the next item.
std::string ResponseWriter::new_id(std::string_view prefix) const {
  return fmt::format("{}_{}_{}", prefix, request_id_, output_.size());
}

}  // namespace leasehold::http

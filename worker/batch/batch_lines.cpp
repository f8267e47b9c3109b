#include "worker/batch/batch_lines.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/random.hpp"
#include "common/utf8.hpp"
#include "ipc/control/transport/excess.hpp"

namespace leasehold::batch {
namespace {

using Json = nlohmann::ordered_json;

std::string text_in(const Json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Json result_of(const std::string& custom_id) {
  return {{"id", fmt::format("batch_req_{:016x}", random_bits())}, {"custom_id", custom_id}};
}

std::string as_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<BatchLine> parse_line(std::string_view line) {
  if (!is_utf8(line)) return fail(Errc::BadRequest, "the line is not UTF-8");
  const Json json = TRY(control::parse_request_json(line, "the line"));
  if (!json.is_object())
    return fail(Errc::BadRequest, "the line is not a JSON object; send one request on each line");
  BatchLine parsed{.custom_id = text_in(json, "custom_id"),
                   .url = text_in(json, "url"),
                   .body = {},
                   .model = {}};
  if (parsed.custom_id.empty() || parsed.custom_id.size() > kMaxCustomIdBytes) {
    return fail(Errc::BadRequest,
                fmt::format("custom_id is not a text of 1 to {} bytes", kMaxCustomIdBytes));
  }
  if (text_in(json, "method") != "POST") return fail(Errc::BadRequest, "method is not \"POST\"");
  const auto body = json.find("body");
  if (body == json.end() || !body->is_object())
    return fail(Errc::BadRequest, "body is not an object; send the request's JSON");
  parsed.model = text_in(*body, "model");
  parsed.body = body->dump();
  return parsed;
}

void LineChecker::add(std::string_view bytes) {
  while (!bytes.empty() && !is_full()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    length_ += part.size();
    if (length_ <= kMaxLineBytes) rest_ += part;
    if (end == std::string_view::npos) return;
    end_line();
    bytes.remove_prefix(end + 1);
  }
}

void LineChecker::end_line() {
  ++number_;
  if (length_ > kMaxLineBytes) {
    refuse("line_too_long", fmt::format("the line is longer than {} bytes", kMaxLineBytes));
  } else {
    check(rest_);
  }
  offset_ += std::exchange(length_, 0) + 1;
  rest_.clear();
}

CheckedLines LineChecker::finish() {
  if (length_ > 0 && !is_full()) end_line();
  number_ = 0;
  if (checked_.lines.empty() && checked_.errors.empty())
    refuse("empty_file", "the file has no line; send one request on each line");
  return std::move(checked_);
}

void LineChecker::refuse(std::string code, std::string message, std::string param) {
  checked_.errors.push_back({.code = std::move(code),
                             .message = std::move(message),
                             .param = std::move(param),
                             .line = number_});
}

/// An empty line is skipped.
void LineChecker::check(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find_first_not_of(" \t") == std::string_view::npos) return;
  if (checked_.lines.size() == kMaxLines) {
    refuse("too_many_lines",
           fmt::format("the file has more than {} lines; send several files", kMaxLines));
    checked_.errors.resize(kMaxLineErrors, checked_.errors.back());
    return;
  }
  auto parsed = parse_line(line);
  if (!parsed) return refuse("invalid_line", parsed.error().detail);
  if (parsed->url != endpoint_) {
    return refuse("mismatched_endpoint",
                  fmt::format("url is '{}', and the endpoint of the batch is {}",
                              printable_excerpt(parsed->url), endpoint_),
                  "url");
  }
  if (!parsed->model.empty() && !is_served_(parsed->model)) {
    return refuse("model_not_found",
                  fmt::format("this worker has no model '{}'; GET /v1/models lists its names",
                              printable_excerpt(parsed->model)),
                  "body/model");
  }
  if (!ids_.insert(parsed->custom_id).second) {
    return refuse("duplicate_custom_id",
                  fmt::format("custom_id '{}' is on an earlier line, too",
                              printable_excerpt(parsed->custom_id)),
                  "custom_id");
  }
  checked_.lines.push_back({.custom_id = std::move(parsed->custom_id),
                            .offset = offset_,
                            .size_bytes = static_cast<std::uint32_t>(line.size())});
}

LineEnd line_end(int status) {
  if (status < 400) return LineEnd::Completed;
  if (status == 401 || status == 403) return LineEnd::KeyEnded;
  const bool may_succeed = status == 429 || status == 503 || status == 504;
  return may_succeed ? LineEnd::Again : LineEnd::Failed;
}

/// A body that is not JSON, which no answer of this worker has, is kept as text.
std::string result_line(const std::string& custom_id, const LineAnswer& answer) {
  Json result = result_of(custom_id);
  Json body = Json::parse(answer.body, nullptr, false);
  if (body.is_discarded()) body = answer.body;
  result["response"] = {
      {"status_code", answer.status}, {"request_id", answer.request_id}, {"body", std::move(body)}};
  result["error"] = nullptr;
  return as_line(result);
}

std::string unrun_line(const std::string& custom_id, const std::string& code,
                       const std::string& message) {
  Json result = result_of(custom_id);
  result["response"] = nullptr;
  result["error"] = {{"code", code}, {"message", message}};
  return as_line(result);
}

std::string answered_id(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  return json.is_object() ? text_in(json, "custom_id") : std::string();
}

}  // namespace leasehold::batch

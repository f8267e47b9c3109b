#include "tools/gateway/api_error.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/cli/terminal_text.hpp"
#include "ipc/http/http_errors.hpp"
#include "ipc/http/message_errors.hpp"

namespace leasehold::gateway {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kResponses = "/v1/responses";

http::Answer in_form(Api api, http::Answer answer, std::string_view x_request_id) {
  if (api != Api::Messages) return answer;
  return http::as_message_error(std::move(answer), x_request_id);
}

std::string event(std::string_view name, const std::string& data) {
  std::string block;
  if (!name.empty()) block.append("event: ").append(name).append("\n");
  return block.append("data: ").append(data).append("\n\n");
}

}  // namespace

Api api_of(std::string_view path) {
  if (http::is_message_path(path)) return Api::Messages;
  return path == kResponses ? Api::Responses : Api::Completions;
}

bool generates(std::string_view method, std::string_view path) {
  constexpr std::array kPaths{std::string_view("/v1/completions"),
                              std::string_view("/v1/chat/completions"), kResponses,
                              std::string_view("/v1/messages")};
  return method == "POST" && std::ranges::find(kPaths, path) != kPaths.end();
}

bool concerns_files(std::string_view path) {
  constexpr std::array kRoots{std::string_view("/v1/files"), std::string_view("/v1/batches")};
  return std::ranges::any_of(kRoots, [&](std::string_view root) {
    return path == root || (path.starts_with(root) && path[root.size()] == '/');
  });
}

bool is_repeatable(std::string_view method, std::string_view path) {
  constexpr std::array kComputed{std::string_view("/v1/embeddings"), std::string_view("/tokenize"),
                                 std::string_view("/detokenize"),
                                 std::string_view("/v1/messages/count_tokens")};
  if (method == "GET" || method == "HEAD" || method == "OPTIONS") return true;
  if (method != "POST") return false;
  return generates(method, path) || path.ends_with("/cancel") ||
         std::ranges::find(kComputed, path) != kComputed.end();
}

Error with_retry_advice(Error error, bool is_resumable) {
  error.detail += "; send the request again";
  if (is_resumable)
    error.detail += ", with the id of the last event in Last-Event-ID to continue the text";
  return error;
}

Error gateway_stopped() {
  return {Errc::Draining, "this gateway stops before the answer has ended"};
}

http::Answer error_answer(Api api, const Error& error, std::string_view x_request_id) {
  return in_form(api, http::refusal(error), x_request_id);
}

http::Answer plain_error(Api api, int status, std::string_view code, const std::string& message,
                         std::string_view x_request_id) {
  return in_form(api, http::plain_error(status, code, message), x_request_id);
}

std::string error_events(Api api, const Error& error) {
  const std::string body = http::error_body({error});
  const Json json = Json::parse(body);
  switch (api) {
    case Api::Messages:
      return event("error", http::message_error_body(error));
    case Api::Responses: {
      const Json failed{{"type", "error"},
                        {"code", json["error"]["code"]},
                        {"message", json["error"]["message"]},
                        {"param", nullptr}};
      return event("error", escape_controls(failed.dump()));
    }
    case Api::Completions:
      return event({}, body) + event({}, "[DONE]");
  }
  std::unreachable();
}

}  // namespace leasehold::gateway

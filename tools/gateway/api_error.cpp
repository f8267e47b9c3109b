#include "tools/gateway/api_error.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/cli/terminal_text.hpp"
#include "ipc/http/http_errors.hpp"

namespace leasehold::gateway {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMessages = "/v1/messages";
constexpr std::string_view kResponses = "/v1/responses";

/// The type that Anthropic's API gives an error with this status.
std::string_view message_error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

Json message_error(const Json& error, int status) {
  return {{"type", "error"},
          {"error",
           {{"type", message_error_type(status)},
            {"message", error["message"]},
            {"details", {{"error_code", error["code"]}}}}}};
}

http::Answer in_form(Api api, http::Answer answer, std::string_view x_request_id) {
  if (api != Api::Messages) return answer;
  Json error = message_error(Json::parse(answer.body)["error"], answer.status);
  error["request_id"] = x_request_id;
  answer.body = escape_controls(error.dump(-1, ' ', false, Json::error_handler_t::replace));
  return answer;
}

std::string event(std::string_view name, const std::string& data) {
  std::string block;
  if (!name.empty()) block.append("event: ").append(name).append("\n");
  return block.append("data: ").append(data).append("\n\n");
}

}  // namespace

Api api_of(std::string_view path) {
  if (path == kMessages || path.starts_with(std::string(kMessages) + "/")) return Api::Messages;
  return path == kResponses ? Api::Responses : Api::Completions;
}

bool generates(std::string_view method, std::string_view path) {
  constexpr std::array kPaths{std::string_view("/v1/completions"),
                              std::string_view("/v1/chat/completions"), kResponses, kMessages};
  return method == "POST" && std::ranges::find(kPaths, path) != kPaths.end();
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
      return event("error",
                   escape_controls(message_error(json["error"], http::status_of(error)).dump()));
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

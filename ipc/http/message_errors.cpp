#include "ipc/http/message_errors.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/cli/terminal_text.hpp"
#include "ipc/http/http_errors.hpp"

namespace leasehold::http {
namespace {

using Json = nlohmann::json;

std::string_view error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
    case 431:
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

/// `error` is the member of an error body with OpenAI's form.
Json message_error(const Json& error, int status) {
  std::string message = error["message"];
  // Some messages name the field themselves.
  const std::string param = error["param"].is_string() ? error["param"] : Json("");
  if (message.find(param) == std::string::npos) message.insert(0, param + ": ");
  return {{"type", "error"},
          {"error",
           {{"type", error_type(status)},
            {"message", std::move(message)},
            {"details", {{"error_code", error["code"]}}}}}};
}

std::string text_of(const Json& json) {
  return escape_controls(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

bool is_message_path(std::string_view path) {
  constexpr std::string_view kMessages = "/v1/messages";
  return path == kMessages || path.starts_with(std::string(kMessages) + "/");
}

std::string message_error_body(const Error& error) {
  const Json body = Json::parse(error_body({error}));
  return text_of(message_error(body["error"], status_of(error)));
}

Answer as_message_error(Answer answer, std::string_view request_id) {
  if (answer.status < 400) return answer;
  const Json body = Json::parse(answer.body, nullptr, false);
  Json error = message_error(body["error"], answer.status);
  error["request_id"] = request_id;
  answer.body = text_of(error);
  return answer;
}

}  // namespace leasehold::http

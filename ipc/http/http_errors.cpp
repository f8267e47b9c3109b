#include "ipc/http/http_errors.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/cli/terminal_text.hpp"

namespace leasehold::http {
namespace {

constexpr std::int64_t kMsPerSecond = 1000;

std::string_view type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

/// The code that OpenAI's API uses, if it has one; otherwise the name of the Errc.
std::string_view code_of(Errc code) {
  if (code == Errc::PromptTooLong) return "context_length_exceeded";
  if (code == Errc::BadToken) return "invalid_api_key";
  if (code == Errc::UnknownAdapter) return "model_not_found";
  return name(code);
}

std::string body_of(int status, const std::string& message, const std::string& param,
                    std::string_view code) {
  nlohmann::json error{{"message", message}, {"type", type_of(status)}, {"param", nullptr}};
  if (!param.empty()) error["param"] = param;
  error["code"] = code;
  return escape_controls(nlohmann::json{{"error", std::move(error)}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

int status_of(Errc code) {
  switch (code) {
    case Errc::BadRequest:
    case Errc::MalformedMessage:
    case Errc::PromptTooLong:
    case Errc::QuotaBlocks:
      return 400;
    case Errc::BadToken:
      return 401;
    case Errc::PermissionDenied:
    case Errc::UnknownTenant:
      return 403;
    case Errc::UnknownRequest:
    case Errc::UnknownMethod:
    case Errc::UnknownAdapter:
      return 404;
    case Errc::RequestIdConflict:
      return 409;
    case Errc::MessageTooLarge:
      return 413;
    case Errc::QuotaConcurrent:
    case Errc::QuotaTokens:
    case Errc::QuotaRequests:
    case Errc::QuotaAdapters:
    case Errc::RebindRateLimited:
      return 429;
    case Errc::RequestCancelled:
      return 499;  // client libraries retry 408, 409, 429 and all from 500 on
    case Errc::EngineDecodeFailed:
    case Errc::NumericFault:
    case Errc::SystemError:
      return 500;
    case Errc::TimedOut:
      return 504;
    default:
      // an ended lease, a full pool, or a missing broker or model: a later retry, or another
      // server, may succeed
      return 503;
  }
}

int status_of(const Error& error) {
  const bool fits_later = error.code == Errc::QuotaBlocks && error.retry_after_ms > 0;
  return fits_later ? 429 : status_of(error.code);
}

std::string error_body(const ApiError& refused) {
  const Error& error = refused.error;
  const std::string_view code = refused.code.empty() ? code_of(error.code) : refused.code;
  return body_of(status_of(error), error.detail, refused.param, code);
}

Answer error_answer(const ApiError& refused) {
  Answer answer{.status = status_of(refused.error), .body = error_body(refused)};
  if (answer.status != 429 && answer.status != 503) return answer;
  const std::int64_t wait_ms = refused.error.retry_after_ms;
  answer.retry_after_s = std::max<std::int64_t>(1, (wait_ms + kMsPerSecond - 1) / kMsPerSecond);
  return answer;
}

Answer refusal(const Error& error) {
  return error_answer({error});
}

Answer plain_error(int status, std::string_view code, const std::string& message) {
  return {.status = status, .body = body_of(status, message, {}, code)};
}

}  // namespace leasehold::http

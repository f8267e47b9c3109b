#include "tools/gateway/forward/refusal.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace leasehold::gateway {
namespace {

using Json = nlohmann::json;

constexpr AnswerLimits kRefusalLimits{.timeout = std::chrono::seconds(5), .max_bytes = 1 << 20};
constexpr std::int64_t kMsPerSecond = 1000;
constexpr std::int64_t kMaxRetryAfterS = 3600;

std::int64_t retry_after_ms(const http::Head& head) {
  const std::string_view text = head.only("Retry-After").value_or("");
  std::int64_t seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = read.ec == std::errc{} && read.ptr == text.data() + text.size();
  return is_number && seconds >= 0 && seconds <= kMaxRetryAfterS ? seconds * kMsPerSecond : 0;
}

/// The text at this path of objects; empty if there is none.
std::string text_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return {};
    at = &at->at(key);
  }
  return at->is_string() ? at->get<std::string>() : std::string();
}

/// OpenAI's own names of codes, which workers use.
std::optional<Errc> code_of(const std::string& text) {
  if (text == "context_length_exceeded") return Errc::PromptTooLong;
  if (text == "invalid_api_key") return Errc::BadToken;
  if (text == "model_not_found") return Errc::UnknownAdapter;  // a model of the host is reported
  return errc_from_name(text);
}

/// Replaces a refusal that is too large to be kept. The cause is in what was not read.
WholeAnswer too_large(const ClientForm& form, int status, const Error& error) {
  const std::string message = fmt::format("the status is {}, and {}", status, error.detail);
  http::Answer answer = plain_error(form.api, status, name(error.code), message, form.x_request_id);
  return {.status = status,
          .fields = {{"Content-Type", "application/json"}},
          .body = std::move(answer.body)};
}

}  // namespace

std::optional<Error> error_in(const HostHead& head, std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  std::string code = text_at(json, {"error", "code"});
  if (code.empty()) code = text_at(json, {"error", "details", "error_code"});
  const auto known = code_of(code);
  if (!known) return std::nullopt;
  Error error{*known, text_at(json, {"error", "message"})};
  error.retry_after_ms = retry_after_ms(head.head);
  return error;
}

boost::asio::awaitable<Result<Refusal>> read_refusal(Shared& shared, HostId host,
                                                     HostExchange exchange, ClientForm form) {
  const HostHead head = exchange.answer;
  auto answer = co_await read_whole_answer(shared, host, std::move(exchange), kRefusalLimits);
  if (!answer && answer.error().code == Errc::MessageTooLarge)
    answer = too_large(form, head.status, answer.error());
  if (!answer) co_return std::unexpected(answer.error());
  Refusal refusal{.answer = *std::move(answer), .error = {}};
  refusal.error = error_in(head, refusal.answer.body);
  // An error of the tenant, such as a quota, says nothing of the requests of others.
  const bool is_of_host = refusal.error && refusal.error->scope == FailureScope::Engine;
  if (is_of_host && refusal.error->retry_after_ms > 0) {
    const std::chrono::milliseconds pause(refusal.error->retry_after_ms);
    shared.hosts.table().refused(host, pause, shared.clock.now());
  }
  co_return refusal;
}

}  // namespace leasehold::gateway

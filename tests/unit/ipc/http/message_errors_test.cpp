// The errors of Anthropic's API.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "ipc/http/http_errors.hpp"
#include "ipc/http/message_errors.hpp"

namespace leasehold::http::message_errors_test {
namespace {
using Json = nlohmann::json;
}

TEST_CASE("http message: errors have Anthropic's form on its paths, with the same status") {
  CHECK(is_message_path("/v1/messages"));
  CHECK(is_message_path("/v1/messages/count_tokens"));
  CHECK_FALSE(is_message_path("/v1/messagesX"));
  CHECK_FALSE(is_message_path("/v1/models"));
  const std::pair<Errc, const char*> types[] = {{Errc::BadRequest, "invalid_request_error"},
                                                {Errc::BadToken, "authentication_error"},
                                                {Errc::PermissionDenied, "permission_error"},
                                                {Errc::UnknownRequest, "not_found_error"},
                                                {Errc::MessageTooLarge, "request_too_large"},
                                                {Errc::QuotaConcurrent, "rate_limit_error"},
                                                {Errc::SystemError, "api_error"},
                                                {Errc::Draining, "overloaded_error"},
                                                {Errc::TimedOut, "timeout_error"}};
  for (const auto& [code, type] : types) {
    CAPTURE(type);
    const Answer plain = refusal({code, "why"});
    const Answer answer = as_message_error(plain, "id-1");
    CHECK(answer.status == plain.status);
    CHECK(answer.retry_after_s == plain.retry_after_s);
    const Json json = Json::parse(answer.body);
    CHECK(json["type"] == "error");
    CHECK(json["error"]["type"] == type);
    CHECK(json["error"]["message"] == "why");
    CHECK(json["request_id"] == "id-1");
  }
}

TEST_CASE("http message: the error's message names the refused field once") {
  const auto message = [](const ApiError& refused) {
    return Json::parse(as_message_error(error_answer(refused), "id-1").body)["error"]["message"];
  };
  CHECK(message({{Errc::BadRequest, "it is not a text"}, "messages/0/role"}) ==
        "messages/0/role: it is not a text");
  CHECK(message({{Errc::BadRequest, "top_k is a whole number"}, "top_k"}) ==
        "top_k is a whole number");
}

TEST_CASE("http message: an answer without an error stays as it is") {
  CHECK(as_message_error({.body = "{}"}, "id-1").body == "{}");
}

}  // namespace leasehold::http::message_errors_test

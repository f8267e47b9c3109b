/// Turns errors into HTTP answers in the form of OpenAI's API. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/http/http_answer.hpp"

namespace leasehold::http {

/// The reason why a request, or one field of it, was refused.
struct ApiError {
  Error error;
  std::string param = {};  ///< The refused field; empty if the error concerns the whole request.
  std::string_view code = {};  ///< A constant: OpenAI's code; empty: the one of the Errc.
};

/// The HTTP status for an error code. QuotaBlocks is 400, because a retry does not help.
int status_of(Errc code);
/// The same for an error. A QuotaBlocks that says when to retry is 429: other leases of the tenant
/// hold the blocks.
int status_of(const Error& error);

/// {"error": {"message", "type", "param", "code"}}.
std::string error_body(const ApiError& refused);

/// Adds Retry-After if the same request can succeed later.
Answer error_answer(const ApiError& refused);
/// The same for an error that concerns the whole request.
Answer refusal(const Error& error);

/// An answer for errors that are not an Errc: 404, 405 and so on.
Answer plain_error(int status, std::string_view code, const std::string& message);

}  // namespace leasehold::http

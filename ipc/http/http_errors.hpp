/// Typed errors as HTTP answers in the shape of OpenAI's API. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/http/http_answer.hpp"

namespace leasehold::http {

/// A refusal of one field of a request, or of the request.
struct ApiError {
  Error error;
  std::string param = {};  ///< The field; empty: none.
};

/// The status of an error: the one table. 400 for QuotaBlocks, which no retry changes.
int status_of(Errc code);
/// The same, with 429 for a QuotaBlocks that says when to retry: other leases of the tenant hold
/// the blocks.
int status_of(const Error& error);

/// {"error": {"message", "type", "param", "code"}}.
std::string error_body(const ApiError& refused);

/// With Retry-After where the same request can succeed later.
Answer error_answer(const ApiError& refused);
/// The same without a field.
Answer refusal(const Error& error);

/// For what is not an Errc: 404, 405 and so on.
Answer plain_error(int status, std::string_view code, const std::string& message);

}  // namespace leasehold::http

/// The errors of a gateway in the form of the API that the client uses. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/http/http_answer.hpp"

namespace leasehold::gateway {

enum class Api : std::uint8_t { Completions, Responses, Messages };

/// Chats and completions, and paths that generate nothing, share the form of Completions.
Api api_of(std::string_view path);

/// True for the paths that generate a text.
bool generates(std::string_view method, std::string_view path);

/// True for requests below the paths of files and batches, which the host that has them serves.
bool concerns_files(std::string_view path);

/// True if a host may get the request twice without harm: it reads, or computes without storing.
/// A text that is computed twice is cancelled when its connection ends.
bool is_repeatable(std::string_view method, std::string_view path);

/// The same error, and that the client may send the request again. `is_resumable`: it can come back
/// with Last-Event-ID.
Error with_retry_advice(Error error, bool is_resumable);
/// The end of a request that outlasts the drain timeout.
Error gateway_stopped();

/// Status, Retry-After and body.
http::Answer error_answer(Api api, const Error& error, std::string_view x_request_id);
/// The same for errors that are not an Errc.
http::Answer plain_error(Api api, int status, std::string_view code, const std::string& message,
                         std::string_view x_request_id);

/// The blocks that end a stream with an error.
std::string error_events(Api api, const Error& error);

}  // namespace leasehold::gateway

/// The errors of `/v1/messages`, in the form of Anthropic's API. Pure.
///
/// Source: the reference of Anthropic's Messages API.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/http/http_answer.hpp"

namespace leasehold::http {

/// True for the paths whose errors have this form.
bool is_message_path(std::string_view path);

/// {"type": "error", "error": {"type", "message", "details": {"error_code"}}}: the data of the
/// event that ends a stream.
std::string message_error_body(const Error& error);

/// Gives an error of another path this form, with the same status and headers, and adds
/// "request_id". The message begins with the path of the refused field. Returns other answers as
/// they are.
Answer as_message_error(Answer answer, std::string_view request_id);

}  // namespace leasehold::http

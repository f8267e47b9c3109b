/// Reads the tools of a chat, and the constraint that `tool_choice` puts on its text. Pure.
#pragma once

#include "worker/http/api/api_request.hpp"
#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// Sets the tools of `out` and the form of its text. For a forced call it also sets the schema of
/// the text, whose arguments are an object that the tool's `parameters` accept. `constraint` is the
/// path of a field that already constrains the text, or empty. Errors: BadRequest naming the field.
Read<void> read_tools(const BodyFields& body, const std::string& constraint, ApiRequest& out);

}  // namespace leasehold::http

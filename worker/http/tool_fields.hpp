/// Reads the tools of a chat, and what its text must be for `tool_choice`. Pure.
#pragma once

#include "worker/http/api_request.hpp"
#include "worker/http/body_field.hpp"

namespace leasehold::http {

/// Sets the tools of `out`, the form of its text, and for a forced call the schema of the text:
/// the arguments are an object that the tool's `parameters` accept. `constraint` is the path of the
/// field that constrains the text otherwise; empty: none. Errors: BadRequest naming the field.
Read<void> read_tools(const BodyFields& body, const ApiModel& model, const std::string& constraint,
                      ApiRequest& out);

}  // namespace leasehold::http

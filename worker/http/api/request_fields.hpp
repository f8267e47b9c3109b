/// Reads the fields that all requests have: the model and the id.
///
/// Errors: BadRequest for a malformed field; UnknownRequest for another model.
#pragma once

#include <string>

#include "worker/http/api/api_request.hpp"
#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// The name in the field `model`, which is a name of the model or of an adapter, or the name of the
/// only model if a body lacks the field.
Read<std::string> read_model_name(const Field& named, const ApiModel& model);

/// The id in `request_id` or `rid`, else that of `defaults`, else a new one.
Read<RequestId> read_request_id(const BodyFields& body, const RequestDefaults& defaults);

}  // namespace leasehold::http

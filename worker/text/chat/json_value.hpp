/// JSON as a template sees it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "worker/text/chat/jinja/limits.hpp"
#include "worker/text/chat/jinja/value.hpp"

namespace leasehold {

/// Objects keep their order, which templates print. A whole number beyond 64 bits becomes a float.
/// Errors: BadRequest for values that nest deeper than jinja::Limits allow.
Result<jinja::Value> value_from_json(const nlohmann::ordered_json& json);

}  // namespace leasehold

/// Converts JSON to template values.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "worker/text/chat/jinja/limits.hpp"
#include "worker/text/chat/jinja/value.hpp"

namespace leasehold {

/// Objects keep the order of their keys, which templates print. Integers beyond 64 bits become
/// floats. Errors: BadRequest for values nested deeper than jinja::Limits allow.
Result<jinja::Value> value_from_json(const nlohmann::ordered_json& json);

}  // namespace leasehold

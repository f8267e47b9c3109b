/// Parses JSON into objects that keep the order of their members, in time that grows no faster than
/// sorting.
///
/// The library's own parser looks each member up among all earlier ones of its object, so one
/// object of n members takes n² comparisons. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// Returns what nlohmann::ordered_json::parse returns: of members with the same name, the first
/// keeps its place and gets the value of the last. Errors: BadRequest with the library's text. The
/// caller limits depth and size.
Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text);

}  // namespace leasehold

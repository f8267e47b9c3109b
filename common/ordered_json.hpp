/// Makes JSON objects that keep the order of their members, in time that grows no faster than
/// sorting.
///
/// The library itself looks each member up among all earlier ones of its object, so one
/// object of n members takes n² comparisons. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace leasehold {

/// Returns what nlohmann::ordered_json::parse returns: of members with the same name, the first
/// keeps its place and gets the value of the last. Errors: BadRequest with the library's text. The
/// caller limits depth and size.
Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text);

/// Returns an object of these members; repeated names as in parse_ordered_json.
nlohmann::ordered_json ordered_object(
    std::vector<std::pair<std::string, nlohmann::ordered_json>> members);

/// True for a value of more levels of objects and arrays. Recurses `levels` deep.
bool nests_deeper_than(int levels, const nlohmann::ordered_json& json);

}  // namespace leasehold

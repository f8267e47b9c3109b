/// Rules for the names of --name-as, under which clients reach the model. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold {

/// Returns what is wrong with a name; empty: nothing. A name in the form of a content
/// ("sha256:…") is refused, because requests for that content would reach this model.
std::string check_model_name(const std::string& name);

/// Refuses a name that equals another one, and more names than worker.ready carries: BadRequest.
Result<void> check_model_names(const std::vector<std::string>& names);

}  // namespace leasehold

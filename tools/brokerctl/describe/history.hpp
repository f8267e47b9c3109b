/// What happened to one thing: its newest events, and the operator actions on it.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// True if the event names the thing: in a field such as "lease" or "new_lease", or as the object
/// of an operator action. `noun` is a singular. Pure.
bool names_thing(const wire::Json& event, const std::string& noun, const std::string& name);

/// Returns the newest events that name the thing, at most 10, oldest first. Reads the last 4000
/// events of the broker. Errors: those of the call; MalformedMessage.
Result<std::vector<wire::Json>> newest_events(const std::string& noun, const std::string& name,
                                              const Dependencies& dependencies);

/// Returns the newest operator actions on the thing, at most 10, newest first; nothing from a
/// broker without --state-dir. Reads the last 1000. Errors: those of the call, except BadRequest
/// and PermissionDenied; MalformedMessage.
Result<std::vector<wire::OperatorActionView>> newest_actions(const std::string& noun,
                                                             const std::string& name,
                                                             const Dependencies& dependencies);

}  // namespace leasehold::brokerctl

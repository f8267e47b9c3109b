/// Limits a list to the elements that the command line names. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/brokerctl/arguments/arguments.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {

/// Removes from `items`, an array, and from `table` all elements that `named` does not name.
/// `table` has one row for each item, in the same order, and its first column is the name. Returns
/// the first name that no element has; nothing if each has one.
std::optional<std::string> keep_named(const Named& named, wire::Json& items, cli::Table& table);

/// The error for a name that no element of `known` has, with the nearest name. The code depends on
/// the noun: UnknownTenant, UnknownWorker, UnknownLease, UnknownRequest; BadRequest for other
/// nouns.
Error unknown_name(const std::string& noun, const std::string& name, const cli::Table& known);

}  // namespace leasehold::brokerctl

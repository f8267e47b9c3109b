/// The output format of a command line that may be wrong.
#pragma once

#include <span>
#include <string>

#include "tools/brokerctl/arguments/arguments.hpp"

namespace leasehold::brokerctl {

/// Searches for -o json without parsing, because errors of the command line itself use this format,
/// too. Pure.
Output requested_output(std::span<const std::string> words);

}  // namespace leasehold::brokerctl

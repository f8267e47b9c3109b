/// `brokerctl explain`: what an error code means, its scope, and what to do next. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/brokerctl/arguments/arguments.hpp"

namespace leasehold::brokerctl {

/// `word` is the name of a code or an exit code; empty: explain all codes. Errors: BadRequest for
/// another word, with the nearest name.
Result<PrintText> explain_error(const std::string& word);

/// The name of every code, in order.
std::vector<std::string> error_code_names();

}  // namespace leasehold::brokerctl

/// What a user of brokerctl can try after an error. Pure.
#pragma once

#include <string>

#include "tools/brokerctl/arguments/arguments.hpp"

namespace leasehold::brokerctl {

/// The hint for the error (common/cli/print_error.hpp), which names the broker; for a verb of
/// `cell` one that names etcd, its file or a command of `cell`.
std::string next_step(const Verb& verb, const Error& error);

}  // namespace leasehold::brokerctl

/// Completion scripts for shells. Pure.
#pragma once

#include <span>
#include <string>

#include "common/cli/command_tree.hpp"

namespace leasehold::brokerctl {

/// Each script completes commands, options, the values of closed lists, and the names of tenants,
/// leases, workers, keys and memory that the broker has now, within one second or not at all. Names
/// below `cell` are those that etcd has.
std::string bash_completion(std::span<const Command> tree);
std::string zsh_completion(std::span<const Command> tree);
std::string fish_completion(std::span<const Command> tree);

}  // namespace leasehold::brokerctl

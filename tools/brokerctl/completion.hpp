/// Completion scripts for shells. Pure.
#pragma once

#include <span>
#include <string>

#include "common/cli/command_tree.hpp"

namespace leasehold::brokerctl {

/// Each script completes commands, options, the values of closed lists, and the names of tenants,
/// leases, workers, keys and memory that the broker has now, and of tenants, keys and hosts of a
/// cell, within one second or not at all.
std::string bash_completion(std::span<const Command> tree);
std::string zsh_completion(std::span<const Command> tree);
std::string fish_completion(std::span<const Command> tree);

}  // namespace leasehold::brokerctl

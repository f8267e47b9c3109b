/// Completion scripts for shells. Pure.
#pragma once

#include <span>
#include <string>

#include "common/cli/command_tree.hpp"

namespace leasehold::brokerctl {

/// Each script completes commands, options and the values of closed lists.
std::string bash_completion(std::span<const Command> tree);
std::string zsh_completion(std::span<const Command> tree);
std::string fish_completion(std::span<const Command> tree);

}  // namespace leasehold::brokerctl

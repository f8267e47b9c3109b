/// The man page brokerctl(1), from the table of commands and the list of errors. Pure.
#pragma once

#include <span>
#include <string>

#include "tools/brokerctl/command_tree.hpp"

namespace leasehold::brokerctl {

/// In roff with man(7) macros.
std::string man_page(std::span<const Command> tree);

}  // namespace leasehold::brokerctl

/// The manual page of a program, from its options and commands and the list of errors. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "common/cli/command_tree.hpp"

namespace leasehold {

/// The page in roff with man(7) macros, for section 1.
std::string man_page(std::string_view program, std::span<const Command> tree);

}  // namespace leasehold

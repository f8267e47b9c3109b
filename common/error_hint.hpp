/// What somebody at a terminal can try after an error.
#pragma once

#include <optional>
#include <string_view>

#include "common/errc.hpp"

namespace leasehold {

/// A sentence without its full stop, the same in every program.
std::string_view error_hint(Errc code);

/// The error a program of ours ended with; nothing for an exit code that is no error of the list.
std::optional<Errc> errc_from_exit_code(int exit_code);

}  // namespace leasehold

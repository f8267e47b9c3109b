/// Suggests what a user can try after an error.
#pragma once

#include <optional>
#include <string_view>

#include "common/errc.hpp"

namespace leasehold {

/// The suggestion for a code, without a full stop; the same in every program.
std::string_view error_hint(Errc code);

/// The inverse of exit_code; nothing for an exit code without an error code.
std::optional<Errc> errc_from_exit_code(int exit_code);

}  // namespace leasehold

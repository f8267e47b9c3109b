/// Whether a JSON text costs more than its sender may cause, before anything of it is built.
///
/// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ipc/control/peer.hpp"

namespace leasehold::control {

/// What this JSON text has more of than `max_depth` and `max_values` allow: "more than 32 levels
/// …". Scans the bytes, so that a hostile text costs no memory. Characters inside texts do not
/// count.
std::optional<std::string> excess_of(std::string_view json, const Limits& limits);

}  // namespace leasehold::control

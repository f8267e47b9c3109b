/// Ids used inside the broker only; none goes over the wire.
#pragma once

#include <functional>

#include "common/ids.hpp"

namespace leasehold {

/// One accepted connection. Never reused.
using ConnectionId = StrongId<struct ConnectionTag>;

/// One call that waits for its answer. Never reused.
using CallId = StrongId<struct CallTag>;

/// Marks a call that the broker itself makes to a worker: no caller waits for the answer.
inline constexpr CallId kInternalCall{0};

}  // namespace leasehold

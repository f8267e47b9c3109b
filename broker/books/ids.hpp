/// Names the broker needs for itself; none of them travels.
#pragma once

#include <functional>

#include "common/ids.hpp"

namespace leasehold {

/// One accepted connection. Counts up, never reused.
using ConnectionId = StrongId<struct ConnectionTag>;

/// One call that waits for its answer. Counts up, never reused.
using CallId = StrongId<struct CallTag>;

/// What the broker asks of a worker for its own sake; nobody waits for the answer.
inline constexpr CallId kInternalCall{0};

}  // namespace leasehold

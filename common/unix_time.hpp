/// The machine's clock, and its distance to boot time.
#pragma once

#include <cstdint>

#include "common/clock.hpp"

namespace leasehold {

/// Milliseconds since 1970, as the machine's clock shows them.
std::int64_t unix_time_ms();

/// Unix time minus boot time, which changes when the machine's clock is set. The two clocks are
/// read one after the other, so the result errs by the time between: less than a millisecond unless
/// the thread is preempted.
Duration unix_minus_boottime();

}  // namespace leasehold

/// The distance between the machine's clock and boot time.
#pragma once

#include "common/clock.hpp"

namespace leasehold {

/// Unix time minus boot time, which changes when the machine's clock is set. The two clocks are
/// read one after the other, so the result errs by the time between: less than a millisecond unless
/// the thread is preempted.
Duration unix_minus_boottime();

}  // namespace leasehold

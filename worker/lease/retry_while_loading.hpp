/// Repeats a call while another worker loads the weights, without a limit on the time.
///
/// WeightsLoading means that the loading worker runs and holds its lease. When that worker ends,
/// the broker removes its region, and the next call starts a load here; when the broker ends, the
/// call fails. Any limit would be too short for some larger model.
#pragma once

#include "common/result.hpp"

namespace leasehold {

/// `call()` returns a Result; `wait()` pauses between two calls. Errors: those of `call` except
/// WeightsLoading.
template <class Call, class Wait>
auto retry_while_loading(Call&& call, Wait&& wait) {
  while (true) {
    auto reply = call();
    if (reply || reply.error().code != Errc::WeightsLoading) return reply;
    wait();
  }
}

}  // namespace leasehold

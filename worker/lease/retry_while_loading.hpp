/// Waiting for weights that another worker is loading, for as long as that takes.
///
/// The broker says when to stop: WeightsLoading means that the loader is there and holds its lease.
/// When it ends, or is killed for owing a sign of life, its region goes and the next call begins a
/// load of our own; when the broker ends, the call says so. A count of our own could only be too
/// short for a model that is larger than it had in mind.
#pragma once

#include "common/result.hpp"

namespace leasehold {

/// `call()` gives a Result; `wait()` lets time pass between two asks. Errors: those of `call`, but
/// for WeightsLoading.
template <class Call, class Wait>
auto retry_while_loading(Call&& call, Wait&& wait) {
  while (true) {
    auto reply = call();
    if (reply || reply.error().code != Errc::WeightsLoading) return reply;
    wait();
  }
}

}  // namespace leasehold

/// Waiting for weights that another worker is loading, for as long as that takes.
///
/// The broker says when to stop: WeightsLoading means that the loader is there and holds its lease.
/// When it ends, or is killed for owing a sign of life, its region goes and the next ask begins a
/// load of our own; when the broker ends, the ask says so. A count of our own could only be too
/// short for a model that is larger than it had in mind.
#pragma once

#include "common/result.hpp"

namespace leasehold {

/// `ask()` gives a Result; `pause()` lets time pass between two asks. Errors: those of `ask`, but
/// for WeightsLoading.
template <class Ask, class Pause>
auto retry_while_loading(Ask&& ask, Pause&& pause) {
  while (true) {
    auto reply = ask();
    if (reply || reply.error().code != Errc::WeightsLoading) return reply;
    pause();
  }
}

}  // namespace leasehold

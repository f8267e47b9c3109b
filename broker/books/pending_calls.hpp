/// The calls about one lease that have no answer yet. None is journaled: callers repeat their calls
/// after a restart of the broker. Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "broker/books/extents.hpp"
#include "broker/books/ids.hpp"
#include "common/clock.hpp"
#include "common/result.hpp"

namespace leasehold {

/// Extents of one pool sent to the worker, and the call that waits for them.
struct PendingGrant {
  CallId call;
  MemoryPool pool = MemoryPool::Kv;
  std::set<ExtentId> waiting;
  std::optional<Error> refused;
};

struct PendingCalls {
  std::vector<PendingGrant> grants;    ///< Until the lease is `acquired`, the first is the acquire.
  std::uint32_t grants_in_flight = 0;  ///< Grants sent to the worker and not answered.
  std::vector<CallId> shrinks;
  std::vector<CallId> late_shrinks;  ///< Callers got TimedOut; the worker may still answer.
  std::set<ExtentId> unclaimed;      ///< Extents of growths that were answered TimedOut.
  /// The call that waits for memory and the journal, for the fill, or for the memory of the lease
  /// that this one replaces on another worker.
  std::optional<CallId> open;
  /// When the wait for the worker's answers began; each answer restarts it. Zero: it owes none.
  TimePoint waiting_since;

  bool worker_owes_answer() const {
    return grants_in_flight > 0 || !shrinks.empty() || !late_shrinks.empty();
  }
  /// The grant of these extents, all of one message; null if none waits for them.
  PendingGrant* grant_of(std::span<const ExtentId> extents) {
    const auto waits = [&](const PendingGrant& grant) {
      return !extents.empty() && grant.waiting.contains(extents.front());
    };
    const auto found = std::ranges::find_if(grants, waits);
    return found == grants.end() ? nullptr : &*found;
  }
  /// Removes and returns the calls for which callers wait.
  std::vector<CallId> take_callers();
};

}  // namespace leasehold

/// Events that a worker has not reported to its broker yet. Bounded: when a slow or disconnected
/// broker fills it, the oldest reports of the tenant with the most reports are dropped, so that a
/// tenant whose requests end often displaces only its own reports.
///
/// Pure. Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "common/fair_shares.hpp"
#include "common/ids.hpp"

namespace leasehold {

class ReportQueue {
 public:
  static constexpr std::size_t kMaxKept = 4096;
  static constexpr std::size_t kMaxBatch = 256;  ///< Keeps a message far below its size limit.

  /// Adds a report about a tenant; an empty name means the worker itself.
  void push(const TenantId& tenant, std::string report) {
    waiting_.push_back({tenant, std::move(report)});
    kept_.take(tenant);
    if (waiting_.size() <= kMaxKept) return;
    const TenantId most = kept_.largest();
    waiting_.erase(std::ranges::find(waiting_, most, &Report::tenant));
    kept_.give_back(most);
    ++dropped_;
  }

  /// Reports dropped since the last call.
  std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

  /// Takes the oldest reports, for one message.
  std::vector<std::string> take() {
    std::vector<std::string> taken;
    while (!waiting_.empty() && taken.size() < kMaxBatch) {
      kept_.give_back(waiting_.front().tenant);
      taken.push_back(std::move(waiting_.front().text));
      waiting_.pop_front();
    }
    return taken;
  }

  bool empty() const { return waiting_.empty(); }

 private:
  struct Report {
    TenantId tenant;
    std::string text;
  };
  std::deque<Report> waiting_;
  FairShares<TenantId> kept_{kMaxKept};
  std::uint64_t dropped_ = 0;
};

}  // namespace leasehold

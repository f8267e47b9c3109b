/// Samples of a broker's state, for the charts of the page. Pure: time is an argument.
///
/// A sample is taken only when a scrape or an open page queries the state. So a gap means that
/// neither did, or that the broker did not answer. Threads: one.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "common/clock.hpp"
#include "tools/monitor/broker_state.hpp"

namespace leasehold::monitor {

class History {
 public:
  /// 20 minutes of a page that queries every two seconds; less than 4 MiB.
  static constexpr std::size_t kMaxSamples = 600;

  void add(const BrokerState& state, TimePoint at);

  /// Columns of equal length, oldest first: {"at_boottime_ns": […], "live": […], "revoked": […],
  /// "stuck": […], "tokens": {tenant: […]}}. The tenants are those of the newest sample. A null
  /// marks a sample in which TenantCounts had no count of that name. Token counts never fall.
  control::Json to_json() const;

 private:
  struct Sample {
    TimePoint at;
    std::uint32_t live = 0;
    std::uint32_t revoked = 0;
    std::uint32_t stuck = 0;
    std::map<std::string, std::uint64_t> tokens;
  };

  std::deque<Sample> samples_;
};

}  // namespace leasehold::monitor

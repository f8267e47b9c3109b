/// Asks a broker for its state and its lists, each at most once a second, and only when a scrape or
/// an open page wants it: an idle broker is not woken for nothing.
///
/// A read waits for at most 5 s to connect and 2 s for each call. Without an answer it is the error
/// of the broker, and the log says why, once. After a failed state() the lists are not asked for
/// until state() succeeds. What a read returns stays valid until the next read of the same kind.
/// Threads: one.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/metrics/recent.hpp"
#include "common/result.hpp"
#include "ipc/control/tenant_counts.hpp"
#include "tools/monitor/broker_state.hpp"
#include "tools/monitor/history.hpp"

namespace leasehold::monitor {

class BrokerReader {
 public:
  using Json = control::Json;
  /// A list is cut after the page of the broker that reaches this; "total" counts all.
  static constexpr std::size_t kEnoughItems = 4000;
  static constexpr std::uint64_t kMaxEvents = 500;

  /// `clock` outlives it.
  BrokerReader(std::string socket, const Clock& clock);
  BrokerReader(const BrokerReader&) = delete;  // its members call this one
  BrokerReader& operator=(const BrokerReader&) = delete;

  const Result<BrokerState>& state() { return state_.read(); }
  /// The metrics as text; broker_is_down() without an answer.
  const std::string& metrics_text() { return text_.read(); }
  /// {"items": [LeaseView …], "total"}
  const Result<Json>& leases() { return leases_.read(); }
  /// {"items": [ExtentView …], "total"}
  const Result<Json>& extents() { return extents_.read(); }
  /// {"items": [event with its "sequence" …], "newest"}: the newest ones, oldest first.
  const Result<Json>& events() { return events_.read(); }
  /// A sample of every state() that was answered.
  const History& history() const { return history_; }

 private:
  Result<BrokerState> ask_state() const;
  Result<Json> ask_events() const;
  template <class View>
  Result<Json> ask_list() const;
  Result<BrokerState> make_state();
  std::string make_text();
  void count_tenants(BrokerState& state);

  std::string socket_;
  const Clock* clock_;
  std::optional<Error> down_;  // of the last state()
  std::map<TenantId, wire::TenantServed> totals_;
  TenantCounts counts_;
  History history_;
  metrics::Recent<Result<BrokerState>> state_;
  metrics::Recent<std::string> text_;
  metrics::Recent<Result<Json>> leases_;
  metrics::Recent<Result<Json>> extents_;
  metrics::Recent<Result<Json>> events_;
};

}  // namespace leasehold::monitor

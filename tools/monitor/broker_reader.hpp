/// Queries a broker's state and lists, each at most once a second, and only when a scrape or an
/// open page needs it, so that an idle broker is not woken needlessly.
///
/// A read waits at most 5 s to connect and 2 s for each call. If the broker does not answer, the
/// read returns the error, and the reader logs the reason once. After a failed state() the lists
/// are not queried until state() succeeds. A returned reference stays valid until the next read of
/// the same kind. Threads: one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/metrics/recent.hpp"
#include "common/result.hpp"
#include "ipc/control/messages/tenant_counts.hpp"
#include "tools/monitor/broker_state.hpp"
#include "tools/monitor/history.hpp"
#include "tools/monitor/past_revocations.hpp"

namespace leasehold::monitor {

class BrokerReader {
 public:
  using Json = control::Json;
  /// A list requests no further page from the broker once it has this number of items; "total"
  /// counts all items.
  static constexpr std::size_t kEnoughItems = 4000;
  static constexpr std::uint64_t kMaxEvents = 500;
  static constexpr std::uint32_t kRequestsPerWorker = 100;

  /// `clock` must outlive the reader.
  BrokerReader(std::string socket, const Clock& clock);
  BrokerReader(const BrokerReader&) = delete;  // its members hold `this`
  BrokerReader& operator=(const BrokerReader&) = delete;

  const Result<BrokerState>& state() { return state_.read(); }
  /// The metrics as text. If the broker does not answer, they are those of broker_is_down() and the
  /// monitor's own.
  const std::string& metrics_text() { return text_.read(); }
  /// {"items": [LeaseView …], "total", "past": [LeaseView …]}. "past" has revocations of earlier
  /// answers that the broker no longer lists (PastRevocations).
  const Result<Json>& leases() { return leases_.read(); }
  /// {"items": [ExtentView …], "total"}
  const Result<Json>& extents() { return extents_.read(); }
  /// {"items": [event with its "sequence" …], "newest"}: the newest events, oldest first.
  const Result<Json>& events() { return events_.read(); }
  /// {"items": [RequestView …], "more", "unreachable": [{"worker", "detail"} …]}: the first
  /// kRequestsPerWorker of each ready worker; "more" says that one has more.
  const Result<Json>& requests() { return requests_.read(); }
  /// Holds a sample of every state() that the broker answered.
  const History& history() const { return history_; }

 private:
  Result<BrokerState> ask_state() const;
  Result<Json> ask_events() const;
  Result<Json> ask_leases();
  template <class View>
  Result<std::pair<std::vector<View>, std::uint64_t>> ask_list() const;
  Result<Json> ask_extents() const;
  Result<Json> ask_requests();
  Result<BrokerState> make_state();
  std::string make_text();
  void count_tenants(BrokerState& state);

  std::string socket_;
  const Clock* clock_;
  std::optional<Error> down_;  // error of the last state(), if it failed
  std::map<TenantId, wire::TenantServed> totals_;
  TenantCounts counts_;
  History history_;
  PastRevocations past_revocations_;
  metrics::Recent<Result<BrokerState>> state_;
  metrics::Recent<std::string> text_;
  metrics::Recent<Result<Json>> leases_;
  metrics::Recent<Result<Json>> extents_;
  metrics::Recent<Result<Json>> events_;
  metrics::Recent<Result<Json>> requests_;
};

}  // namespace leasehold::monitor

/// Decides under which lease the requests of an API key run: one for all of them.
///
///   Acquiring ─granted─► Open ─the last request left, idle_ttl over─► released
///       │ refused          └─ended, or takes no more requests─► Closed ─the last request left─►
///       ▼                                                                              released
///   its requests get the refusal
///
/// A request that its client left running is kept: its lease is not released before the request is
/// finished or its time is over, unless the lease ends.
///
/// The requests of a key share one lease, so they share its cached prefixes, and one acquisition
/// replaces it for all of them when it ends. A retryable refusal is given to all requests of the
/// key for kRefusalTime, so that none of them asks again at once. A lease belongs to a key and not
/// to a tenant, because it ends with the key.
///
/// Pure: time is an argument. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "ipc/control/messages/common.hpp"

namespace leasehold::http {

/// The error that requests get when the broker refuses a lease on this worker. A restarted broker
/// does not know the worker until the worker has attached again, so UnknownWorker becomes
/// BrokerLost, which is temporary.
Error as_local_error(const Error& error);

class KeyLeaseTable {
 public:
  /// Identifies a lease from its acquisition on. Never reused.
  using Number = std::uint64_t;
  /// How long later requests of the key get the same refusal. Equal to the first retry delay of a
  /// session (ipc/client/retry_decision.hpp).
  static constexpr Duration kRefusalTime = std::chrono::milliseconds(50);

  struct Acquire {
    Number lease = 0;  ///< The caller must ask the broker for this lease.
  };
  struct Wait {
    Number lease = 0;  ///< An earlier caller has asked the broker for this lease.
  };
  struct Use {
    Number lease = 0;
  };
  /// What a request does to get a lease, or why it gets none.
  using Joined = std::variant<Acquire, Wait, Use, Error>;

  explicit KeyLeaseTable(Duration idle_ttl) : idle_ttl_(idle_ttl) {}

  /// Finds the lease for a request. The request counts towards that lease until `left`, unless the
  /// result is an error.
  Joined join(const ApiKeyId& key, const TenantId& tenant, TimePoint now);
  void granted(Number lease);
  /// Forgets the lease and its requests.
  void refused(Number lease, const Error& error, TimePoint now);
  /// The lease has ended or takes no more requests. Does nothing if the lease is not open.
  void close(Number lease);
  /// Closes the lease and drops its kept requests.
  void ended(Number lease);
  /// A closed lease was replaced in place. Precondition: its key has no other open lease.
  void reopen(Number lease);
  void left(Number lease);
  /// The request runs on without its client, until `until` at the latest. The lease may be closed.
  /// Does nothing if the lease has ended.
  void keep(Number lease, const RequestId& request, TimePoint until);
  /// A client has received the end of the request, perhaps with another key of the tenant.
  void finished(const TenantId& tenant, const RequestId& request);
  bool is_kept(Number lease, TimePoint now) const;

  /// The key's lease that is open or being acquired.
  std::optional<Number> lease_of(const ApiKeyId& key) const;

  /// Removes and returns the leases to release: those without present or kept requests that are
  /// closed or whose idle time is over. Call it after `left`, because it starts the idle time.
  std::vector<Number> take_unused(TimePoint now);
  /// Removes and returns leases without requests whose release frees blocks or memory for a refused
  /// key: with QuotaBlocks those of its tenant, with PoolExhausted all of them, with any other
  /// error none.
  std::vector<Number> take_idle_for(Number refused, const Error& error, TimePoint now);
  /// When take_unused() is due next, by the idle times that its last call set.
  std::optional<TimePoint> next_expiry() const;

 private:
  struct Lease {
    ApiKeyId key;
    TenantId tenant;
    bool is_granted = false;
    bool is_closed = false;
    bool has_ended = false;
    std::uint32_t requests = 0;
    std::optional<TimePoint> idle_until{};  ///< Set by take_unused while it has no requests.
    std::map<RequestId, TimePoint> kept{};  ///< Requests that run without a client, and until when.

    TimePoint kept_until() const;
    /// When the lease is released if no request comes. Precondition: idle_until is set.
    TimePoint due() const;
  };
  struct Refusal {
    Error error;
    TimePoint until;
  };
  std::vector<Number> take_if(const auto& is_taken);
  void forget_current(const Lease& lease, Number number);

  Duration idle_ttl_;
  Number last_ = 0;
  std::map<Number, Lease> leases_;
  std::map<ApiKeyId, Number> current_;  ///< The lease that is not closed, if the key has one.
  std::map<ApiKeyId, Refusal> refusals_;
};

}  // namespace leasehold::http

/// Decides under which lease the requests of an API key run: one for all of them.
///
///   Acquiring ─granted─► Open ─the last request left, idle_ttl over─► released
///       │ refused          └─ended, or takes no more requests─► Closed ─the last request left─►
///       ▼                                                                              released
///   its requests get the refusal
///
/// A request that its client left is kept: until it is finished, or its time is over, its lease is
/// not released, unless that has ended.
///
/// The requests of a key share one lease, so they share its cached prefixes, and its end is
/// followed by one acquisition. A refusal that passes is given to all requests of the key for
/// kRefusalTime, so that none of them asks at once again. A lease belongs to a key and not to a
/// tenant, because it ends with the key.
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

namespace leasehold::http {

/// The refusal of a lease on this worker, as its requests see it: a broker that restarted does not
/// know the worker until it has attached again, so UnknownWorker becomes BrokerLost, which passes.
Error seen_by_own_worker(const Error& error);

class KeyLeases {
 public:
  /// A lease from its acquisition on; never reused.
  using Number = std::uint64_t;
  /// How long a refusal is given to later requests. As long as the first delay of a session
  /// (ipc/client/retry_decision.hpp).
  static constexpr Duration kRefusalTime = std::chrono::milliseconds(50);

  struct Acquire {
    Number lease = 0;  ///< The caller asks the broker for it.
  };
  struct Wait {
    Number lease = 0;  ///< An earlier caller has asked for it.
  };
  struct Use {
    Number lease = 0;
  };
  /// What a request does to get a lease, or why it gets none.
  using Joined = std::variant<Acquire, Wait, Use, Error>;

  explicit KeyLeases(Duration idle_ttl) : idle_ttl_(idle_ttl) {}

  /// A request needs a lease. It counts as one of that lease until `left`, unless it gets an error.
  Joined join(const ApiKeyId& key, const TenantId& tenant, TimePoint now);
  void granted(Number lease);
  /// The lease is forgotten, with its requests.
  void refused(Number lease, const Error& error, TimePoint now);
  /// The lease has ended, or takes no more requests. Does nothing for one that is not open.
  void close(Number lease);
  /// As close, and nothing is kept any more.
  void ended(Number lease);
  /// A closed lease was replaced in place. Precondition: its key has no other.
  void reopen(Number lease);
  void left(Number lease);
  /// The request leaves the lease, which may be closed, and runs on until `until` at the latest.
  /// Does nothing for a lease that has ended.
  void keep(Number lease, const RequestId& request, TimePoint until);
  /// A client has the end of the tenant's request, also one with another key.
  void finished(const TenantId& tenant, const RequestId& request);
  bool is_kept(Number lease, TimePoint now) const;

  /// The open or acquired lease of a key.
  std::optional<Number> lease_of(const ApiKeyId& key) const;

  /// Takes the leases without requests, present or kept, that are closed or whose time is over:
  /// they are released.
  /// Call it after `left`: the time begins there.
  std::vector<Number> take_unused(TimePoint now);
  /// Takes open leases without requests, so that a key which was refused for lack of blocks or
  /// memory finds some: with QuotaBlocks those of its tenant, with PoolExhausted all. Empty for any
  /// other error.
  std::vector<Number> take_idle_for(Number refused, const Error& error, TimePoint now);
  /// When take_unused() is due next, once it was called.
  std::optional<TimePoint> next_expiry() const;

 private:
  struct Lease {
    ApiKeyId key;
    TenantId tenant;
    bool is_granted = false;
    bool is_closed = false;
    bool has_ended = false;
    std::uint32_t requests = 0;
    std::optional<TimePoint> idle_until{};  ///< While it has no requests; set by take_unused.
    std::map<RequestId, TimePoint> kept{};  ///< Requests without their client, until when.

    TimePoint kept_until() const;
    /// When it is released if no request comes. Precondition: idle_until.
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
  std::map<ApiKeyId, Number> current_;  ///< Of each key that has a lease which is not closed.
  std::map<ApiKeyId, Refusal> refusals_;
};

}  // namespace leasehold::http

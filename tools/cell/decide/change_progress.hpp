/// How far the hosts of a tenant are with a change of it: which have applied it, which have
/// stopped, and until when the others stop by themselves.
///
/// Time is an argument, on the observer's own CLOCK_BOOTTIME. Threads: one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/cell/decide/silent_hosts.hpp"
#include "tools/cell/decide/tenant_view.hpp"

namespace leasehold::cell {

class ChangeProgress {
 public:
  enum class State : std::uint8_t {
    Waiting,   ///< The host may serve the tenant as before the change.
    Applied,   ///< The host has confirmed the change in the ledger.
    Returned,  ///< The host has no part of the tenant any more.
    Void,      ///< The host's membership has ended, so it has stopped.
  };

  /// `before`: the view that the change compared. Its parts are all that can run under the old
  /// policy. `changed`: the revision of the change.
  ChangeProgress(CellKeys keys, TenantId tenant, etcd::Revision changed, const TenantView& before,
                 Duration slack);

  /// Reads the ledger and the hosts that are waited for, in one call.
  etcd::Transaction next_read() const;
  /// The reply came at `now`. Errors: those of view_of.
  Result<void> replied(const etcd::TransactionReply& reply, TimePoint now);

  /// No host serves the tenant as before the change.
  bool is_done() const;
  /// Hosts that have not applied the change and are silent for so long that they have stopped.
  std::vector<Expiry> expired(TimePoint now) const;

  /// How long until `expired` names the next host; nothing if none would be named.
  std::optional<Duration> time_to_expiry(TimePoint now) const;

  struct Row {
    PartOwner owner;
    State state = State::Waiting;
    std::string why;  ///< "applied", "expired 1.2 s ago, after 11.1 s without a beat".
  };
  /// One per part, in the order of their hosts.
  std::vector<Row> rows(TimePoint now) const;

 private:
  struct Host {
    State state = State::Waiting;
    TimePoint since;     // of the state
    Duration silence{};  // before a host was expired
    bool was_member = true;
  };
  void seen(const Ledger& ledger, const std::vector<etcd::KeyValue>& hosts, TimePoint now);
  std::vector<HostName> awaited() const;
  std::string why(const PartOwner& owner, const Host& host, TimePoint now) const;

  CellKeys keys_;
  TenantId tenant_;
  etcd::Revision changed_;
  SilentHosts silent_;
  std::map<PartOwner, Host> hosts_;
};

}  // namespace leasehold::cell

/// The leases under which a session's text has run, and the rebind in progress. Pure: time is an
/// argument.
///
/// A rebind begins when the stream ends or a second lease is requested. It ends when a worker
/// accepts the request under the next lease.
#pragma once

#include <optional>
#include <utility>

#include "common/clock.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::client {

/// Threads: one.
class LeaseHistory {
 public:
  struct Rebind {
    LeaseId old_lease;
    wire::RebindMode mode = wire::RebindMode::Reprefill;
    Duration took{};
  };

  /// The session has this lease from now on.
  void granted(LeaseId lease) {
    had_lease_ = true;
    replaceable_ = lease;
  }
  bool had_lease() const { return had_lease_; }

  /// The lease that the next acquire replaces. Empty if the broker does not know that lease.
  std::optional<LeaseId> replaceable() const { return replaceable_; }
  /// Returns false if `replaceable` was empty.
  bool forget_replaceable() { return std::exchange(replaceable_, std::nullopt).has_value(); }
  /// If the worker died before a move, the memory to adopt belongs to the earlier lease.
  void stream_lost() { replaceable_ = accepted_; }

  /// The lease under which a worker last accepted the request.
  std::optional<LeaseId> accepted() const { return accepted_; }
  /// Notes that a worker refused the token of a lease under which no worker has accepted the
  /// request. Returns true if this is a repeated refusal since a worker last accepted the request.
  bool refused_unused_token() { return std::exchange(refused_unused_token_, true); }
  /// The stream ended because this lease, which holds a published text or an adapter, ended.
  void others_lease_ended(std::optional<LeaseId> lease) { ended_text_lease_ = lease; }

  /// Does nothing if a rebind is in progress.
  void begin_rebind(TimePoint now) {
    if (!rebind_began_) rebind_began_ = now;
  }
  void give_up_rebind() { rebind_began_.reset(); }
  Duration waited(TimePoint now) const {
    return rebind_began_ ? now - *rebind_began_ : Duration::zero();
  }
  wire::RebindMode mode() const { return mode_; }
  void set_mode(wire::RebindMode mode) { mode_ = mode; }

  /// A worker accepted the request under this lease. Returns the rebind that this ends; nothing for
  /// the first lease, and for a submission under the same lease.
  std::optional<Rebind> accepted_under(LeaseId lease, TimePoint now) {
    replaceable_ = lease;
    refused_unused_token_ = false;
    const auto before = std::exchange(accepted_, lease);
    const auto text = std::exchange(ended_text_lease_, std::nullopt);
    const auto ended = text && before == lease ? text : before;
    const Rebind rebind{.old_lease = ended.value_or(lease),
                        .mode = std::exchange(mode_, wire::RebindMode::Reprefill),
                        .took = waited(now)};
    give_up_rebind();
    if (rebind.old_lease == lease) return std::nullopt;
    return rebind;
  }

 private:
  bool had_lease_ = false;
  std::optional<LeaseId> replaceable_;
  std::optional<LeaseId> accepted_;
  std::optional<LeaseId> ended_text_lease_;
  bool refused_unused_token_ = false;
  std::optional<TimePoint> rebind_began_;
  wire::RebindMode mode_ = wire::RebindMode::Reprefill;  // of the rebind in progress
};

}  // namespace leasehold::client

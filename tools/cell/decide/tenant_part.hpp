/// The part of one tenant's limits that this host has: takes, raises, lowers and returns it.
///
/// Raise: first the ledger, then the broker. Lower: first the broker; when the broker has confirmed
/// that no more can run, the ledger. So what can run here is at most what the ledger says.
///
/// A host lowers only its own part. Each write gives what is free to all hosts, by the division of
/// the demands in the ledger. A host learns from a mail that its part was raised.
///
/// A write whose reply is lost may arrive later. It compares the revision of the ledger that it
/// read, so it cannot follow a later write. Until the ledger has another revision, the broker is
/// raised only by the reply of a write, and a lowering whose outcome is not known counts as done.
/// Then a read shows what this host has, because others only raise it.
///
/// Threads: one.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "common/result.hpp"
#include "ipc/etcd/etcd_types.hpp"
#include "tools/cell/decide/cell_keys.hpp"
#include "tools/cell/decide/division.hpp"
#include "tools/cell/decide/tenant_view.hpp"

namespace leasehold::cell {

/// A limit that the broker gets. A confirmation names its revision, so that one about an earlier
/// limit of the same size is not taken for one about this limit.
struct BrokerLimit {
  Share share;
  AdapterLimits adapters;
  std::uint64_t revision = 0;
  bool operator==(const BrokerLimit&) const = default;
};

class TenantPart {
 public:
  /// Up to this many parts in a ledger, writes are seldom refused.
  static constexpr std::size_t kFewParts = 4;

  TenantPart(CellKeys keys, TenantId tenant) : keys_(std::move(keys)), tenant_(std::move(tenant)) {}

  /// A membership begins, with a part of zero.
  void joined(PartOwner owner);
  /// A restarted agent goes on in a membership, or the broker has restarted. `limit` and `may_run`
  /// are what the broker says, after everything that was sent to it before. Precondition: no call
  /// is running.
  void resumed(PartOwner owner, const BrokerLimit& limit, const Share& may_run);
  /// The membership has ended. The limit is zero, and the leases of the tenant must be revoked.
  void fenced();
  /// What the workers of this host could use; beyond the tenant's limits it counts as these. Zero
  /// returns the part.
  void wants(const Share& demand);
  /// The tenant's limits over all hosts, as last read.
  const Share& limits() const { return view_.policy.limits; }
  /// A text of the tenant has moved here from `host`, which may still run. While both are needed,
  /// the part of this host counts once with that of the other one (see ledger.hpp). It may be
  /// called before the membership is known here. Do not call it in a cell with strict moves.
  void replaces(const HostName& host);
  /// A mail for this tenant has arrived, or the host could use more: reads the ledger again.
  void look_again() { is_due_ = true; }
  /// Writes in sequence that etcd has refused, because another host wrote the ledger first. The
  /// caller waits (part_schedule.hpp), then calls `look_again`.
  unsigned refusals() const { return writes_.refusals; }
  /// Parts in the ledger, as last read.
  std::size_t parts() const { return view_.ledger.parts.size(); }
  /// How many of them come before that of this host.
  std::size_t parts_before() const;

  /// What the broker may use now. The caller passes each change on to the broker.
  const BrokerLimit& limit() const { return limit_; }
  /// The broker has applied the limit of this revision; at most `may_run` can still run or be held.
  void confirmed(std::uint64_t revision, const Share& may_run);
  /// True if the host could use more than it has. Others raise its part when they free some. Only
  /// parts of hosts that were lost are freed by the hosts that find them void, so the caller then
  /// calls `look_again` from time to time.
  bool is_short() const { return owner_ && !demand().fits(recorded_); }
  /// The ledger has no part of this host, and there is nothing to do. The caller may forget it.
  bool is_returned() const {
    return limit_.share.is_zero() && recorded_.is_zero() && writes_.are_known &&
           writes_.refusals == 0 && !is_due_ && !caller_ && !next_;
  }

  /// If the broker confirms the limit before `next_call`, that call lowers the part in the ledger.
  /// The caller may wait briefly for that; otherwise lowering takes further calls.
  bool awaits_confirmation() const {
    return stage_ == Stage::Write && next_ && !may_run_.fits(limit_.share);
  }

  /// The next call to etcd. Nothing: there is nothing to do, or a call is running.
  std::optional<etcd::Transaction> next_call();
  /// Errors: BadRequest for a ledger or a policy that is wrong, which the next call reads again;
  /// PoolExhausted when too many hosts have parts. Nothing is granted then.
  Result<void> replied(const etcd::TransactionReply& reply);
  /// The call may have been executed, or may be executed later.
  void failed();

 private:
  enum class Stage : std::uint8_t { Idle, ReadLedger, ReadMembers, Write };
  struct Plan {
    Share target;   // what this host should have
    Share written;  // what the ledger will say
    std::optional<PartOwner> instead_of;
    bool is_needed = false;  // the write changes something before the broker confirms its limit
  };
  struct Moved {                    // texts of another host
    std::optional<HostName> from;   // whose part the next read finds
    std::optional<PartOwner> part;  // which was found
  };
  struct Writes {
    bool are_known = true;  // the outcomes of all
    /// The ledger's revision that those of unknown outcome compare; nothing: not known.
    std::optional<etcd::Revision> compared;
    unsigned refusals = 0;
  };

  Share demand() const { return smaller(demand_, limits()); }
  Result<void> take_view(const etcd::TransactionReply& reply);
  void assume_new_members(const std::set<HostName>& known);
  void trust_view();
  Result<void> decide_on_view();
  Result<void> decide();
  Ledger drop_void_parts(etcd::Transaction& write) const;
  std::vector<Share> divide_among(const Ledger& others) const;
  const Part* find_replaced(const Ledger& others) const;
  void plan_share(const Ledger& others, const Share& divided);
  void follow_plan();
  Result<Ledger> plan_ledger(const Ledger& others) const;
  void raise_others(Ledger& ledger, const Ledger& others, const std::vector<Share>& shares) const;
  void add_mails(const Ledger& ledger, const Ledger& others, const std::vector<Share>& shares,
                 etcd::Transaction& write) const;
  bool needs_write(const Ledger& ledger) const;
  void delete_mail(etcd::Transaction& write) const;
  void end_without_write();
  void set_limit(const Share& share);
  void distrust_write();
  std::optional<Part> new_part() const;
  void finish_write(bool has_succeeded);

  CellKeys keys_;
  TenantId tenant_;
  std::optional<PartOwner> owner_;
  Share demand_;
  Moved moved_;
  BrokerLimit limit_;
  Share may_run_;   // at least limit_
  Share recorded_;  // surely in the ledger; at least may_run_
  Writes writes_;
  bool is_due_ = false;

  Stage stage_ = Stage::Idle;
  std::optional<PartOwner> caller_;  // whose call is running; nothing: none is
  std::optional<etcd::Transaction> next_;
  TenantView view_;
  Plan plan_;
};

}  // namespace leasehold::cell

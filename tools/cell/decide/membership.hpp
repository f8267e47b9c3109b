/// Whether this host is a member of its cell, and until when it may run.
///
/// A host joins by creating its key and stays a member by beats: transactions that replace the
/// newest beat of the same membership. It may run until its *ceiling*: the time at which it sent
/// its newest beat that arrived, plus the TTL, minus 200 ms. It needs no answer to stop.
///
/// The outcome of a call whose reply is lost is not known. So the host keeps what it sent since the
/// last known outcome, and finds its own number in the next refusal. Only a number that this
/// process sent counts; any other one means that the membership has ended. A call may arrive
/// minutes later: a member of etcd that was stopped carries out what waited at its socket.
///
/// Time is an argument, on CLOCK_BOOTTIME. Threads: one.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "ipc/etcd/etcd_types.hpp"
#include "tools/cell/decide/cell_keys.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {

/// Taken off the TTL: a process needs this time to see that its deadline has passed.
inline constexpr Duration kCeilingMargin = std::chrono::milliseconds(200);

/// The ceiling of a cell without a TTL.
inline constexpr TimePoint kNoCeiling{std::numeric_limits<std::int64_t>::max()};

struct SentBeat {
  BeatId beat;
  TimePoint sent;
  Duration ttl{};
  bool operator==(const SentBeat&) const = default;
};

/// What a restarted agent needs to go on in the same membership. It is stored before each call.
struct SavedMembership {
  Incarnation incarnation;
  etcd::Revision modified;  ///< Revision of the newest beat that is known to have arrived.
  TimePoint ceiling;
  std::vector<SentBeat> sent;  ///< Beats whose outcome is not known, oldest first.
  bool is_draining = false;    ///< The agent has drained the workers of this host.
  bool operator==(const SavedMembership&) const = default;
};

/// What a reply means for this host.
enum class MembershipChange : std::uint8_t {
  Joined,     ///< A new membership has begun, with parts of zero.
  Renewed,    ///< The ceiling has moved.
  Fenced,     ///< The membership has ended: revoke the leases of all cell tenants, then join.
  NameInUse,  ///< The key is there, of another process or of an earlier membership of this host.
};

class Membership {
 public:
  static constexpr std::size_t kMaxSent = 64;

  Membership(CellKeys keys, HostName host) : keys_(std::move(keys)), host_(std::move(host)) {}
  /// Goes on in a membership that an earlier process of this host had. Precondition: nothing was
  /// sent.
  void resume(SavedMembership saved);

  /// The number of the next beat: `fresh`, a number that was never used, or the newest again while
  /// the outcomes of kMaxSent others are not known. None of those may be forgotten, because any of
  /// them may be the one that arrives.
  BeatId next_beat(BeatId fresh) const;
  /// The transaction that joins or beats with this record, which has the number of `next_beat`. One
  /// call at a time: `sent`, then `replied` unless the outcome is not known. Errors: those of
  /// text_of(HostRecord).
  Result<etcd::Transaction> next_call(const HostRecord& record) const;
  /// The TTL for a beat at `now`: `wanted`, or longer as long as the broker may have a later
  /// ceiling, because a broker that is frozen or absent keeps it. A membership without a TTL gets
  /// one at once.
  Duration next_ttl(Duration wanted, TimePoint now) const;
  /// Until a third of the TTL has passed since the newest beat that arrived was sent; zero when it
  /// has. So a beat whose arrival was only learned later is followed at once. Precondition: a
  /// member, with a TTL.
  Duration time_to_beat(Duration ttl, TimePoint now) const;
  /// `now` is read before the first byte is sent.
  void sent(const HostRecord& record, TimePoint now);
  /// Precondition: `sent` came before. Errors: MalformedMessage; nothing changes then.
  Result<MembershipChange> replied(const etcd::TransactionReply& reply);

  bool is_member() const { return incarnation_.has_value(); }
  std::optional<PartOwner> owner() const;
  /// Until when leases of cell tenants may run. Zero outside of a membership.
  TimePoint ceiling() const { return ceiling_; }
  bool may_run(TimePoint now) const { return is_member() && now < ceiling_; }
  /// What the newest beat read in `wanted/H`. Errors: those of read_wanted.
  const Result<WantedHost>& wanted() const { return wanted_; }
  /// Nothing outside of a membership.
  std::optional<SavedMembership> saved() const;

 private:
  MembershipChange accepted(const etcd::TransactionReply& reply);
  MembershipChange refused(const etcd::TransactionReply& reply);
  std::vector<SentBeat>::iterator find_sent(const etcd::KeyValue& entry);
  void confirm(std::size_t index);

  CellKeys keys_;
  HostName host_;
  std::optional<Incarnation> incarnation_;
  etcd::Revision modified_;
  TimePoint ceiling_;
  std::vector<SentBeat> sent_;
  Result<WantedHost> wanted_;
};

/// Text of a file. `boot_id`: the times are of one boot of the machine. Errors of the reader:
/// FileCorrupt for another text; StaleGeneration when the machine has started again since.
std::string text_of(const SavedMembership& saved, std::string_view boot_id);
Result<SavedMembership> read_saved_membership(std::string_view text, std::string_view boot_id);

}  // namespace leasehold::cell

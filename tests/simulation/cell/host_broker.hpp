/// The broker of a host: its real decisions, recovery, lease table and proofs; its memory and its
/// journal are modelled and never fail.
///
/// Time is an argument, on the clock of the host. Threads: one.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "broker/decide/core.hpp"
#include "broker/recovery/recovery.hpp"
#include "broker/supervise/quiet_observer.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold::cell::simulation {

/// A quota, or the grant of a lease. A worker gets them in the order in which they were sent.
using ToWorker = std::variant<wire::TenantQuota, wire::LeaseGrant>;

class HostBroker {
 public:
  using OnAnswer = std::function<void(const Result<Answer>&)>;
  struct Links {
    /// Sends something to the worker.
    std::function<void(ToWorker)> send;
    /// Notifies the agent on this connection.
    std::function<void(ConnectionId, const wire::CellPartChanged&)> notify;
  };

  explicit HostBroker(Links links);
  /// The broker that starts after `before` has been killed. The lease table is kept.
  HostBroker(HostBroker& before, TimePoint now);

  void post(Event event, TimePoint now);
  /// `done` runs when the broker answers, within a later `post` if it waits.
  template <class Message>
  void call(ConnectionId connection, Message message, TimePoint now, OnAnswer done) {
    Caller caller{.call = CallId{next_call_++}, .connection = connection, .pid = kWorkerPid};
    if (done) answers_.emplace(caller.call, std::move(done));
    post(Call<Message>{std::move(caller), std::move(message)}, now);
  }
  /// The loop did not run from now on; the next event reports the stall.
  void stop(TimePoint now);

  const State& state() const { return state_; }
  /// Extents of the lease, which its worker has mapped.
  std::vector<ExtentId> extents_of(LeaseId lease) const;
  LeaseTable& table() { return table_; }

  // Effects.
  void perform(const effect::Journal& effect);
  void perform(const effect::PublishGrant& effect);
  void perform(const effect::StoreWords& effect);
  void perform(const effect::SetDeadline& effect);
  void perform(const effect::SetDrainDeadline& effect);
  void perform(const effect::BindWorker& effect);
  void perform(const effect::ForgetWorker& effect);
  void perform(const effect::SendGrant& effect);
  void perform(const effect::SendQuota& effect);
  void perform(const effect::NotifyAgent& effect);
  void perform(const effect::NotifyAdapters&) {}
  void perform(const effect::SendAdapterOrder&) {}
  void perform(const effect::SendUnmap& effect);
  void perform(const effect::SendPing& effect);
  void perform(const effect::BeginQuietWatch& effect);
  void perform(const effect::VerifyExtents& effect);
  void perform(const effect::Reply& effect);
  void perform(const effect::ReplyWhenJournaled& effect);
  /// The others have no result that a cell depends on.
  void perform(const auto&) {}

 private:
  static constexpr std::int64_t kWorkerPid = 1000;

  HostBroker(Recovered recovered, HostBroker& before, TimePoint now);
  void settle(TimePoint now);

  State state_;
  LeaseTable table_;
  QuietObserver quiet_;
  journal::Image journal_;
  std::map<AttachmentId, std::unique_ptr<WorkerSegmentReader>> segments_;
  Links links_;
  std::deque<Event> queue_;
  std::map<CallId, OnAnswer> answers_;
  std::vector<std::pair<OnAnswer, Result<Answer>>> answered_;
  std::optional<TimePoint> stopped_at_;
  bool is_settling_ = false;
  std::uint64_t next_call_ = 1;
};

}  // namespace leasehold::cell::simulation

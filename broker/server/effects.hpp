/// Performs the effects of decisions: stores lease words, sends memory, answers calls.
///
/// The result of an effect is posted as an event. Threads: the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <optional>

#include "broker/decide/core.hpp"
#include "broker/journal/journal.hpp"
#include "broker/memory/host_memory.hpp"
#include "broker/memory/lent_memory.hpp"
#include "broker/memory/spill_space.hpp"
#include "broker/server/connections/worker_calls.hpp"
#include "broker/server/event_log.hpp"
#include "broker/server/event_logger.hpp"
#include "broker/server/memory_returns.hpp"
#include "broker/server/quiet_watches.hpp"
#include "broker/server/replies.hpp"
#include "broker/server/start/fd_keeper.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

/// The components on which effects act. All of them outlive ServerEffects.
struct EffectDependencies {
  boost::asio::io_context& io;
  LeaseTable& table;
  LentMemory& memory;  ///< Memory of the KV pool and the weights.
  HostMemory& host;  ///< Memory of the swap pool; the same object as `memory` if no device is lent.
  SpillSpace& spill;
  WorkerLinks& links;
  QuietWatches& quiet;
  Replies& replies;
  EventLog& log;
  journal::Journal& journal;
  FdKeeper& fd_store;
  Duration call_timeout;  ///< Timeout for a reply of a worker for which a caller waits.
  /// Returns null for a connection that has closed.
  std::function<std::shared_ptr<control::Peer>(ConnectionId)> find_peer;
};

class ServerEffects {
 public:
  ServerEffects(EffectDependencies dependencies, std::function<void(Event)> post);

  /// Writes the batches in one transaction. False: nothing was written.
  bool write_together(const std::vector<const journal::Batch*>& batches);

  void perform(const effect::CreateExtents& effect);
  void perform(const effect::Journal& effect);
  void perform(const effect::PublishGrant& effect);
  void perform(const effect::StoreWords& effect);
  void perform(const effect::SetDeadline& effect);
  void perform(const effect::SetDrainDeadline& effect);
  void perform(const effect::BindWorker& effect);
  void perform(const effect::ResumeWorker& effect);
  void perform(const effect::ForgetWorker& effect);
  void perform(const effect::SendGrant& effect);
  void perform(const effect::SendUnmap& effect);
  void perform(const effect::BeginQuietWatch& effect);
  void perform(const effect::PunchExtents& effect);
  void perform(const effect::ClearExtents& effect);
  void perform(const effect::VerifyExtents& effect);
  void perform(const effect::CreateRegion& effect);
  void perform(const effect::ShareRegion& effect);
  void perform(const effect::SealRegion& effect);
  void perform(const effect::ScrubRegion& effect);
  void perform(const effect::CloseRegion& effect);
  void perform(const effect::KillWorker& effect);
  void perform(const effect::Reply& effect);
  void perform(const effect::ReplyWhenJournaled& effect);
  void perform(const effect::NotifyHolder& effect);
  void perform(const effect::NotifyDraining& effect);
  void perform(const effect::NotifyAgent& effect);
  void perform(const effect::AppendEvent& effect);
  void perform(const effect::Warn& effect);

  template <class Effect>
    requires requires(WorkerCalls& calls, const Effect& effect) { calls.perform(effect); }
  void perform(const Effect& effect) {
    worker_calls_.perform(effect);
  }

  /// Number of decisions that could not be written to the journal at once.
  std::uint64_t journal_faults() const { return journal_faults_; }

  /// Keeps a descriptor for a restarted broker.
  void keep(const std::string& name, const UniqueFd& fd);

 private:
  void write(journal::Batch batch);
  void note_written();
  LentMemory& memory_of(MemoryPool pool);
  void identify_memory(journal::Batch& batch) const;
  void send_grant(const effect::SendGrant& effect, Result<std::vector<UniqueFd>> fds);
  void note_refused(const journal::Batch& batch, const Error& why);
  /// Removes and returns the error that forbids sending `id`.
  template <class Id>
  std::optional<Error> take_refusal(std::map<Id, Error>& refused, Id id);

  EffectDependencies dependencies_;
  std::function<void(Event)> post_;
  WorkerCalls worker_calls_;
  MemoryReturns returns_;
  EventLogger logger_;
  std::uint64_t journal_faults_ = 0;
  std::optional<Error> unwritten_;  ///< The error, if the last batch is not on disk.
  /// Extents that must not be sent: their memory was not created, or their grant is not on disk.
  std::map<ExtentId, Error> refused_extents_;
  std::map<LeaseId, Error> unwritten_weights_;  ///< Engine leases whose grant is not on disk.
  SystemClock clock_;
};

}  // namespace leasehold

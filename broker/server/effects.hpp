/// Does what decisions ask for: stores words, makes and sends memory, answers calls.
///
/// What an effect leads to is posted as an event. Threads: the one of the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <optional>

#include "broker/decide/core.hpp"
#include "broker/journal/journal.hpp"
#include "broker/memory/lent_memory.hpp"
#include "broker/server/event_log.hpp"
#include "broker/server/fd_keeper.hpp"
#include "broker/server/replies.hpp"
#include "broker/server/worker_links.hpp"
#include "broker/supervise/quiet_observer.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

/// The server's dependencies that effects act on; all outlive the performer.
struct EffectDependencies {
  boost::asio::io_context& io;
  LeaseTable& table;
  LentMemory& memory;
  WorkerLinks& links;
  QuietObserver& quiet;
  Replies& replies;
  EventLog& log;
  journal::Journal& journal;
  FdKeeper& fd_store;
  Duration call_timeout;  ///< For a worker's answer that a caller waits for.
};

class ServerEffects {
 public:
  ServerEffects(EffectDependencies dependencies, std::function<void(Event)> post)
      : dependencies_(dependencies), post_(std::move(post)) {}
  ServerEffects(const ServerEffects&) = delete;
  ServerEffects& operator=(const ServerEffects&) = delete;

  void perform(const effect::Journal& effect);
  void perform(const effect::PublishGrant& effect);
  void perform(const effect::StoreWords& effect);
  void perform(const effect::SetDeadline& effect);
  void perform(const effect::SetDrainDeadline& effect);
  void perform(const effect::BindWorker& effect);
  void perform(const effect::ResumeWorker& effect);
  void perform(const effect::ForgetWorker& effect);
  void perform(const effect::SendGrant& effect);
  void perform(const effect::SendSettle& effect);
  void perform(const effect::SendUnmap& effect);
  void perform(const effect::SendPing& effect);
  void perform(const effect::SendReclaim& effect);
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
  void perform(const effect::AppendEvent& effect);
  void perform(const effect::Warn& effect);

 private:
  void write(journal::Batch batch);
  void make_memory(journal::Batch& batch);
  void send_grant(const effect::SendGrant& effect, Result<std::vector<UniqueFd>> fds);
  void send_unmap(const effect::SendUnmap& effect);
  void note_refused(const journal::Batch& batch, const Error& why);
  /// The error under which nothing of this may leave the broker; asked once.
  template <class Id>
  std::optional<Error> take_refusal(std::map<Id, Error>& refused, Id id);
  void keep(const std::string& name, const UniqueFd& fd);
  using OnReply = std::function<void(Result<control::Payload>)>;
  void call_worker(AttachmentId worker, std::string_view method, control::Payload payload,
                   OnReply on_reply);

  EffectDependencies dependencies_;
  bool should_log(const effect::AppendEvent& effect);

  std::function<void(Event)> post_;
  TimePoint logged_at_;  ///< Of the events told last, and how many there were.
  std::size_t logged_ = 0;
  std::optional<Error> unwritten_;               ///< Why the last batch is not on disk.
  std::map<ExtentId, Error> unwritten_extents_;  ///< Lent by a decision that could not be written.
  std::map<LeaseId, Error> unwritten_weights_;   ///< Likewise engine leases.
  SystemClock clock_;
};

}  // namespace leasehold

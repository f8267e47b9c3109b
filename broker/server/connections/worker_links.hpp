/// The broker's link to each worker process: connection, pidfd, worker segment, eventfd.
///
/// A link is prepared when the worker calls `worker.attach`, and bound when the worker is admitted.
/// Ownership: a link owns its descriptors and lives until the worker process has exited, even if
/// the connection closes earlier. Threads: the io_context's thread.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <memory>

#include "broker/decide/event.hpp"
#include "broker/server/connections/passed_calls.hpp"
#include "common/machine/process.hpp"
#include "ipc/control/transport/peer.hpp"
#include "ipc/table/worker_segment.hpp"

namespace leasehold {

struct WorkerLink {
  std::shared_ptr<control::Peer> peer;  ///< Null after a broker restart until the worker resumes.
  UniqueFd pidfd;
  WorkerSegmentReader segment;
  UniqueFd wakeup_fd;  ///< The worker signals this after a unit that refused a launch.
  boost::asio::posix::stream_descriptor exit_watch;
  boost::asio::posix::stream_descriptor wakeup_watch;
};

/// A pidfd for the peer's process. The pid may have been reused since the connect, so the user is
/// checked again after the pidfd is open.
/// Errors: ConnectionLost if the process is gone, PermissionDenied if its pid is not visible.
Result<UniqueFd> open_peer_pidfd(const control::Credentials& credentials);

class WorkerLinks {
 public:
  struct Handlers {
    std::function<void(ProcessExit)> on_exit;
    std::function<void()> on_wakeup;
  };
  WorkerLinks(boost::asio::io_context& io, Handlers handlers)
      : io_(io), handlers_(std::move(handlers)), passed_calls_(io) {}

  /// Errors: ConnectionLost, OutOfMemory, SystemError.
  Result<void> prepare(ConnectionId connection, std::shared_ptr<control::Peer> peer);
  void bind(ConnectionId connection, AttachmentId worker);

  /// The descriptors of a link that the previous broker kept.
  struct Kept {
    UniqueFd segment;
    UniqueFd wakeup_fd;
    UniqueFd pidfd;
  };
  /// Restores a link, without a connection. Errors: UntrustedSegment, SystemError.
  Result<void> restore(AttachmentId worker, Kept kept);
  /// Do what `prepare` and `bind` do, for a worker that resumes its link. After `resume` the worker
  /// may send descriptors.
  void prepare_resume(ConnectionId connection, std::shared_ptr<control::Peer> peer) {
    returning_[connection] = std::move(peer);
  }
  void resume(ConnectionId connection, AttachmentId worker);

  /// Watches for the exit of an earlier broker's worker whose descriptors were not kept. If it has
  /// exited, `on_exit` is called soon.
  void watch_orphan(AttachmentId worker, const ProcessIdentity& process);

  void drop_prepared(ConnectionId connection) {
    prepared_.erase(connection);
    returning_.erase(connection);
  }
  void forget(AttachmentId worker) {
    links_.erase(worker);
    orphans_.erase(worker);
  }
  /// Null if the worker is not watched.
  const UniqueFd* pidfd(AttachmentId worker) const;

  WorkerLink* find(AttachmentId worker);
  PassedCalls& passed_calls() { return passed_calls_; }
  const std::map<AttachmentId, std::unique_ptr<WorkerLink>>& all() const { return links_; }

 private:
  Result<std::unique_ptr<WorkerLink>> make_link(std::shared_ptr<control::Peer> peer, Kept kept);
  void add(AttachmentId worker, std::unique_ptr<WorkerLink> link);
  struct Orphan {
    UniqueFd pidfd;
    boost::asio::posix::stream_descriptor exit_watch;
  };
  void watch_exit(AttachmentId worker);
  void watch_wakeup(AttachmentId worker);

  boost::asio::io_context& io_;
  Handlers handlers_;
  PassedCalls passed_calls_;
  std::map<ConnectionId, std::unique_ptr<WorkerLink>> prepared_;
  std::map<ConnectionId, std::shared_ptr<control::Peer>> returning_;
  std::map<AttachmentId, std::unique_ptr<WorkerLink>> links_;
  std::map<AttachmentId, Orphan> orphans_;
};

}  // namespace leasehold

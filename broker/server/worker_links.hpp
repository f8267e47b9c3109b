/// What the broker holds of each worker process: connection, pidfd, worker segment, eventfd.
///
/// A link is prepared when the worker calls `worker.attach` and bound when it was admitted.
/// Ownership: links own their descriptors; a link stays until its process has exited, whatever
/// becomes of its connection. Threads: the one of the io_context.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <memory>

#include "broker/decide/event.hpp"
#include "ipc/control/peer.hpp"
#include "ipc/table/worker_segment.hpp"

namespace leasehold {

struct WorkerLink {
  std::shared_ptr<control::Peer> peer;  ///< Null until a worker of before the restart is back.
  UniqueFd pidfd;
  WorkerSegmentReader segment;
  UniqueFd wakeup_fd;  ///< eventfd the worker rings after a unit that refused something.
  boost::asio::posix::stream_descriptor exit_watch;
  boost::asio::posix::stream_descriptor wakeup_watch;
};

/// A pidfd for the process at the other end of a connection. The pid may have been reused between
/// connect and now, so the user is compared once more behind the pidfd.
/// Errors: ConnectionLost when that process is gone.
Result<UniqueFd> open_peer_pidfd(const control::Credentials& credentials);

class WorkerLinks {
 public:
  struct Handlers {
    std::function<void(ProcessExit)> on_exit;
    std::function<void()> on_wakeup;
  };
  WorkerLinks(boost::asio::io_context& io, Handlers handlers)
      : io_(io), handlers_(std::move(handlers)) {}

  /// Errors: ConnectionLost, OutOfMemory, SystemError.
  Result<void> prepare(ConnectionId connection, std::shared_ptr<control::Peer> peer);
  void bind(ConnectionId connection, AttachmentId worker);

  /// A link without a connection, from what was kept while no broker ran.
  /// Errors: UntrustedSegment, SystemError.
  struct Kept {
    UniqueFd segment;
    UniqueFd wakeup_fd;
    UniqueFd pidfd;
  };
  Result<void> restore(AttachmentId worker, Kept kept);
  /// As `prepare` and `bind`, for a worker that comes back to its link. From then on it may send
  /// descriptors.
  void prepare_resume(ConnectionId connection, std::shared_ptr<control::Peer> peer) {
    returning_[connection] = std::move(peer);
  }
  void resume(ConnectionId connection, AttachmentId worker);

  /// A worker of an earlier broker of which nothing was kept: only its end is waited for.
  void watch_orphan(AttachmentId worker, UniqueFd pidfd);

  void drop_prepared(ConnectionId connection) {
    prepared_.erase(connection);
    returning_.erase(connection);
  }
  void forget(AttachmentId worker) {
    links_.erase(worker);
    orphans_.erase(worker);
  }
  /// Null when the worker is not watched (any more).
  const UniqueFd* pidfd(AttachmentId worker) const;

  WorkerLink* find(AttachmentId worker);
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
  std::map<ConnectionId, std::unique_ptr<WorkerLink>> prepared_;
  std::map<ConnectionId, std::shared_ptr<control::Peer>> returning_;
  std::map<AttachmentId, std::unique_ptr<WorkerLink>> links_;
  std::map<AttachmentId, Orphan> orphans_;
};

}  // namespace leasehold

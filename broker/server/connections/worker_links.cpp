#include "broker/server/connections/worker_links.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <fstream>

#include "broker/supervise/exit_observer.hpp"
#include "common/expects.hpp"

namespace leasehold {
namespace {

namespace asio = boost::asio;
using Watch = asio::posix::stream_descriptor;

/// Only a resumed worker may send descriptors, those of the memory that it still maps.
constexpr control::Limits kWorkerLimits{.max_fds = 0};
constexpr control::Limits kResumedLimits{};

/// The connection of a worker does not count in its user's share, so that other connections of the
/// user cannot cause the worker to lose its leases.
void set_worker_limits(control::Peer& peer, const control::Limits& limits) {
  peer.set_queue_meter(nullptr);
  peer.set_input_meter(nullptr);
  peer.set_limits(limits);
}

/// Effective user of a running process, from /proc/<pid>/status, which every user may read.
std::optional<uid_t> effective_user(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; status >> word;) {
    uid_t real = 0;
    uid_t effective = 0;
    if (word == "Uid:" && status >> real >> effective) return effective;
  }
  return std::nullopt;
}

Result<UniqueFd> make_wakeup_fd() {
  UniqueFd wakeup_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wakeup_fd) return fail_errno(Errc::SystemError, "eventfd", errno);
  return wakeup_fd;
}

/// Asio closes the descriptor that it watches, so it gets a duplicate.
Result<Watch> watch_of(asio::io_context& io, const UniqueFd& fd) {
  return Watch(io, TRY(fd.duplicate()).release());
}

}  // namespace

Result<UniqueFd> open_peer_pidfd(const control::Credentials& credentials) {
  if (credentials.pid <= 0) {
    return fail(Errc::PermissionDenied,
                "the broker does not see the caller's process, which is in another pid namespace, "
                "and could not see its end; run both in one: --pid=host or --pid=container:NAME, "
                "or shareProcessNamespace of a pod");
  }
  UniqueFd pidfd = TRY(open_pidfd(credentials.pid));
  const auto user = effective_user(credentials.pid);
  if (has_exited(pidfd) || user != credentials.uid) {
    return fail(Errc::ConnectionLost,
                fmt::format("process {} is not the one that connected", credentials.pid));
  }
  return pidfd;
}

Result<std::unique_ptr<WorkerLink>> WorkerLinks::make_link(std::shared_ptr<control::Peer> peer,
                                                           Kept kept) {
  WorkerSegmentReader segment =
      TRY(kept.segment ? WorkerSegmentReader::adopt(std::move(kept.segment))
                       : WorkerSegmentReader::create());
  Watch exit_watch = TRY(watch_of(io_, kept.pidfd));
  Watch wakeup_watch = TRY(watch_of(io_, kept.wakeup_fd));
  return std::make_unique<WorkerLink>(WorkerLink{std::move(peer), std::move(kept.pidfd),
                                                 std::move(segment), std::move(kept.wakeup_fd),
                                                 std::move(exit_watch), std::move(wakeup_watch)});
}

Result<void> WorkerLinks::prepare(ConnectionId connection, std::shared_ptr<control::Peer> peer) {
  UniqueFd pidfd = TRY(open_peer_pidfd(peer->credentials()));
  UniqueFd wakeup_fd = TRY(make_wakeup_fd());
  prepared_[connection] =
      TRY(make_link(std::move(peer),
                    {.segment = {}, .wakeup_fd = std::move(wakeup_fd), .pidfd = std::move(pidfd)}));
  return {};
}

void WorkerLinks::bind(ConnectionId connection, AttachmentId worker) {
  auto node = prepared_.extract(connection);
  expects(!node.empty(), "a link is prepared before its worker is admitted");
  set_worker_limits(*node.mapped()->peer, kWorkerLimits);
  add(worker, std::move(node.mapped()));
}

Result<void> WorkerLinks::restore(AttachmentId worker, Kept kept) {
  if (!kept.segment || !kept.wakeup_fd || !kept.pidfd) {
    return fail(Errc::UntrustedSegment,
                fmt::format("descriptors of attachment {} are missing", worker.value));
  }
  add(worker, TRY(make_link(nullptr, std::move(kept))));
  return {};
}

void WorkerLinks::resume(ConnectionId connection, AttachmentId worker) {
  auto node = returning_.extract(connection);
  WorkerLink* link = find(worker);
  expects(!node.empty() && link != nullptr, "a resume is prepared and its link is restored");
  link->peer = std::move(node.mapped());
  set_worker_limits(*link->peer, kResumedLimits);
}

void WorkerLinks::add(AttachmentId worker, std::unique_ptr<WorkerLink> link) {
  links_[worker] = std::move(link);
  watch_exit(worker);
  watch_wakeup(worker);
}

WorkerLink* WorkerLinks::find(AttachmentId worker) {
  const auto found = links_.find(worker);
  return found == links_.end() ? nullptr : found->second.get();
}

void WorkerLinks::watch_orphan(AttachmentId worker, const ProcessIdentity& process) {
  auto pidfd = open_pidfd(process);
  if (!pidfd) {
    if (const auto exit = ExitObserver::observe(worker, process))
      asio::post(io_, [this, proof = *exit] { handlers_.on_exit(proof); });
    return;
  }
  auto watch = watch_of(io_, *pidfd);
  if (!watch) return;  // without a watch the worker's memory stays counted
  orphans_.emplace(worker, Orphan{*std::move(pidfd), *std::move(watch)});
  watch_exit(worker);
}

const UniqueFd* WorkerLinks::pidfd(AttachmentId worker) const {
  const auto link = links_.find(worker);
  if (link != links_.end()) return &link->second->pidfd;
  const auto orphan = orphans_.find(worker);
  return orphan == orphans_.end() ? nullptr : &orphan->second.pidfd;
}

void WorkerLinks::watch_exit(AttachmentId worker) {
  const auto orphan = orphans_.find(worker);
  Watch& watch =
      orphan != orphans_.end() ? orphan->second.exit_watch : links_.at(worker)->exit_watch;
  watch.async_wait(Watch::wait_read, [this, worker](const auto& error) {
    const UniqueFd* found = pidfd(worker);
    if (error || found == nullptr) return;
    const auto proof = ExitObserver::observe(worker, *found);
    if (!proof) return watch_exit(worker);
    handlers_.on_exit(*proof);
  });
}

void WorkerLinks::watch_wakeup(AttachmentId worker) {
  WorkerLink& link = *links_.at(worker);
  link.wakeup_watch.async_wait(Watch::wait_read, [this, worker](const auto& error) {
    const WorkerLink* found = find(worker);
    if (error || found == nullptr) return;
    std::uint64_t wakeups = 0;
    (void)!::read(found->wakeup_fd.get(), &wakeups, sizeof wakeups);  // the count is not needed
    handlers_.on_wakeup();
    if (find(worker) != nullptr) watch_wakeup(worker);
  });
}

}  // namespace leasehold

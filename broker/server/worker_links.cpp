#include "broker/server/worker_links.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <fstream>

#include "broker/supervise/exit_observer.hpp"
#include "common/expects.hpp"
#include "common/process.hpp"

namespace leasehold {
namespace {

namespace asio = boost::asio;
using Watch = asio::posix::stream_descriptor;

/// Effective user of a running process, as the kernel tells everybody.
std::optional<uid_t> effective_user(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; status >> word;) {
    uid_t real = 0;
    uid_t effective = 0;
    if (word == "Uid:" && status >> real >> effective) return effective;
  }
  return std::nullopt;
}

Result<UniqueFd> make_bell() {
  UniqueFd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) return fail_errno(Errc::SystemError, "eventfd", errno);
  return bell;
}

/// Asio closes what it watches, so it gets a descriptor of its own.
Result<Watch> watch_of(asio::io_context& io, const UniqueFd& fd) {
  return Watch(io, TRY(fd.duplicate()).release());
}

}  // namespace

Result<UniqueFd> open_peer_pidfd(const control::Credentials& credentials) {
  if (credentials.pid <= 0) {
    return fail(Errc::PermissionDenied, "the caller's process cannot be seen from here");
  }
  UniqueFd pidfd = TRY(open_pidfd(credentials.pid));
  const auto user = effective_user(credentials.pid);
  if (has_exited(pidfd) || user != credentials.uid) {
    return fail(Errc::ConnectionLost,
                fmt::format("process {} is no longer the one that connected", credentials.pid));
  }
  return pidfd;
}

Result<void> WorkerLinks::prepare(ConnectionId connection, std::shared_ptr<control::Peer> peer) {
  UniqueFd pidfd = TRY(open_peer_pidfd(peer->credentials()));
  LineReader line = TRY(LineReader::create());
  UniqueFd bell = TRY(make_bell());
  Watch exit_watch = TRY(watch_of(io_, pidfd));
  Watch bell_watch = TRY(watch_of(io_, bell));
  prepared_[connection] = std::make_unique<WorkerLink>(
      WorkerLink{std::move(peer), std::move(pidfd), std::move(line), std::move(bell),
                 std::move(exit_watch), std::move(bell_watch)});
  return {};
}

void WorkerLinks::bind(ConnectionId connection, AttachmentId worker) {
  auto node = prepared_.extract(connection);
  expects(!node.empty(), "a link is prepared before its worker is admitted");
  links_[worker] = std::move(node.mapped());
  watch_exit(worker);
  watch_bell(worker);
}

WorkerLink* WorkerLinks::find(AttachmentId worker) {
  const auto found = links_.find(worker);
  return found == links_.end() ? nullptr : found->second.get();
}

void WorkerLinks::watch_exit(AttachmentId worker) {
  WorkerLink& link = *links_.at(worker);
  link.exit_watch.async_wait(Watch::wait_read, [this, worker](const auto& error) {
    const WorkerLink* found = find(worker);
    if (error || found == nullptr) return;
    const auto proof = ExitObserver::observe(worker, found->pidfd);
    if (!proof) return watch_exit(worker);
    handlers_.on_exit(*proof);
  });
}

void WorkerLinks::watch_bell(AttachmentId worker) {
  WorkerLink& link = *links_.at(worker);
  link.bell_watch.async_wait(Watch::wait_read, [this, worker](const auto& error) {
    const WorkerLink* found = find(worker);
    if (error || found == nullptr) return;
    std::uint64_t rings = 0;
    (void)!::read(found->bell.get(), &rings, sizeof rings);  // how often does not matter
    handlers_.on_bell();
    if (find(worker) != nullptr) watch_bell(worker);
  });
}

}  // namespace leasehold

#include "broker/supervise/exit_observer.hpp"

namespace leasehold {

std::optional<ProcessExit> ExitObserver::observe(AttachmentId worker, const UniqueFd& pidfd) {
  if (!has_exited(pidfd)) return std::nullopt;
  return ProcessExit(worker);
}

std::optional<ProcessExit> ExitObserver::observe(AttachmentId worker,
                                                 const ProcessIdentity& process) {
  const auto pidfd = open_pidfd(process);
  if (pidfd || pidfd.error().code != Errc::ConnectionLost) return std::nullopt;
  return ProcessExit(worker);
}

}  // namespace leasehold

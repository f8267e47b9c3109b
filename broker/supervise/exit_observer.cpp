#include "broker/supervise/exit_observer.hpp"

#include "common/process.hpp"

namespace leasehold {

std::optional<ProcessExit> ExitObserver::observe(AttachmentId worker, const UniqueFd& pidfd) {
  if (!has_exited(pidfd)) return std::nullopt;
  return ProcessExit(worker);
}

}  // namespace leasehold

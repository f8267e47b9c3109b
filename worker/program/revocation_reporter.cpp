#include "worker/program/revocation_reporter.hpp"

#include <unistd.h>

namespace leasehold {

void RevocationReporter::completed_early(const Completed& completed,
                                         const events::ForwardRevoked& what,
                                         TimePoint at) noexcept {
  server_->complete_early(completed);
  if (!completed.revocation) return;
  lease_found_revoked(what, at);
}

void RevocationReporter::lease_found_revoked(const events::ForwardRevoked& what,
                                             TimePoint at) noexcept {
  metrics_->refused_poll(Duration(what.since_flip_ns));
  broker_->report(what, at);
}

void RevocationReporter::refusing_unit_ended() noexcept {
  const std::uint64_t one = 1;
  // The write fails only when the counter is full, and then the broker is awake already.
  (void)!::write(wakeup_fd_, &one, sizeof(one));
}

}  // namespace leasehold

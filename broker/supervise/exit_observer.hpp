/// Creates ProcessExit proofs from pidfds that poll readable. No other code creates them.
#pragma once

#include <optional>

#include "broker/books/fence_proof.hpp"
#include "common/machine/process.hpp"

namespace leasehold {

class ExitObserver {
 public:
  /// Returns nothing while the process behind the pidfd exists.
  static std::optional<ProcessExit> observe(AttachmentId worker, const UniqueFd& pidfd);

  /// Does the same for a process that a previous broker watched under the same boot. Returns
  /// nothing while the process exists, or if that cannot be determined.
  static std::optional<ProcessExit> observe(AttachmentId worker, const ProcessIdentity& process);
};

}  // namespace leasehold

/// The only witness of ProcessExit: a pidfd that polls readable.
#pragma once

#include <optional>

#include "broker/fence_proof.hpp"
#include "common/unique_fd.hpp"

namespace leasehold {

class ExitObserver {
 public:
  /// Nothing while the process behind the pidfd still exists.
  static std::optional<ProcessExit> observe(AttachmentId worker, const UniqueFd& pidfd);
};

}  // namespace leasehold

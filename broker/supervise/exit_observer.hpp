/// The only witness of ProcessExit: a pidfd that polls readable.
#pragma once

#include <optional>

#include "broker/books/fence_proof.hpp"
#include "common/process.hpp"

namespace leasehold {

class ExitObserver {
 public:
  /// Nothing while the process behind the pidfd still exists.
  static std::optional<ProcessExit> observe(AttachmentId worker, const UniqueFd& pidfd);

  /// For a process of this boot that another broker watched: nothing while it exists, or while that
  /// cannot be told.
  static std::optional<ProcessExit> observe(AttachmentId worker, const ProcessIdentity& process);
};

}  // namespace leasehold

/// Keeps descriptors alive while the broker is down: the service manager's store, where there is
/// one.
///
/// Called where a descriptor becomes worth surviving for, and where it stops being so: table and
/// socket at start, worker lines at attach and exit, weights at publication and eviction.
/// Ownership: a kept descriptor is a duplicate. Threads: one.
#pragma once

#include <string_view>

#include "common/unique_fd.hpp"

namespace leasehold {

class FdKeeper {
 public:
  virtual ~FdKeeper() = default;
  /// Errors: SystemError when the store refuses; the broker then runs on without.
  virtual Result<void> keep(std::string_view name, const UniqueFd& fd) = 0;
  virtual void let_go(std::string_view name) = 0;
};

/// For a broker that nobody restarts with its descriptors: everything dies with it.
class NoFdKeeper final : public FdKeeper {
 public:
  Result<void> keep(std::string_view, const UniqueFd&) override { return {}; }
  void let_go(std::string_view) override {}
};

}  // namespace leasehold

/// The file in which an agent keeps its membership, so that its successor goes on in it.
///
/// Its times count from the boot of the machine, so its directory lies below /run. No other user
/// can replace the directory, and one process at a time uses it. Threads: one.
#pragma once

#include <optional>
#include <string>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "tools/cell/decide/membership.hpp"

namespace leasehold::cell {

class MembershipFile {
 public:
  /// Locks the directory, which is made with mode 0700 if it does not exist. Errors: SocketInUse
  /// when another agent uses it; PermissionDenied, FileNotFound, SystemError.
  static Result<MembershipFile> open(const std::string& directory);

  /// Nothing without a file. Errors: those of read_saved_membership and of reading a file.
  Result<std::optional<SavedMembership>> read() const;
  /// Replaces the file in one step; removes it if there is nothing to save. Errors: DiskFull,
  /// PermissionDenied, SystemError. The agent then sends no beat, because a successor could not
  /// recognise it.
  Result<void> write(const std::optional<SavedMembership>& saved) const;

 private:
  MembershipFile(UniqueFd lock, std::string directory, std::string boot_id)
      : lock_(std::move(lock)), directory_(std::move(directory)), boot_id_(std::move(boot_id)) {}
  std::string path() const { return directory_ + "/membership.json"; }

  UniqueFd lock_;
  std::string directory_;
  std::string boot_id_;
};

}  // namespace leasehold::cell

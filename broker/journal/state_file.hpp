/// Small files in the state directory, the lock of the directory, and its errors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/machine/unique_fd.hpp"

namespace leasehold::journal {

/// Converts the errno of a failed open or write in the state directory.
/// Errors: BadRequest (missing, not a directory, read-only), PermissionDenied, DiskFull,
/// SystemError.
std::unexpected<Error> state_file_error(const std::string& path, int error_number);

/// Locks `<state_dir>/broker.lock` until the descriptor is closed or the process ends.
/// Source: flock(2). Errors: SocketInUse if another broker has the lock; those of state_file_error.
Result<UniqueFd> lock_state_dir(const std::string& state_dir);

/// What distinguishes a file from its copies on the same file system.
struct FileIdentity {
  std::uint64_t inode = 0;
  std::int64_t born_unix_ns = 0;  ///< 0 where the file system does not know it.
  bool operator==(const FileIdentity&) const = default;
};

/// The identity of the open file; `path` is only for the error. Errors: SystemError.
Result<FileIdentity> identity_of(const UniqueFd& file, const std::string& path);

/// Replaces the file durably: writes a new file with mode 0600 and renames it, so that a crash
/// leaves either the old or the new text. `text_of` receives the identity that the file will have.
/// Errors: those of state_file_error.
Result<void> write_state_file(const std::string& path,
                              const std::function<std::string(const FileIdentity&)>& text_of);

/// Reads a file with a secret; nothing if there is none. Reads at most one byte more than
/// `max_bytes`. Errors: PermissionDenied if the file belongs to another user or other users may use
/// it; those of state_file_error.
Result<std::optional<std::string>> read_secret_file(const std::string& path, std::size_t max_bytes);

}  // namespace leasehold::journal

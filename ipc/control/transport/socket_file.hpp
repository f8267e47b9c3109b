/// The file of a listening Unix socket. Only the process that created it removes it.
#pragma once

#include <sys/types.h>

#include <string>

namespace leasehold::control {

/// Remembers the file that the socket created. If another process has replaced that file since,
/// `remove` leaves the new one alone.
/// Threads: one.
class SocketFile {
 public:
  /// Call it right after listening on `path`.
  explicit SocketFile(std::string path);

  /// Removes the file unless it is missing or replaced. Returns true when it removed it.
  bool remove() const;

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;  ///< 0 when there was no file.
};

}  // namespace leasehold::control

/// The file of a listening Unix socket, removed by nobody but its maker.
#pragma once

#include <sys/types.h>

#include <string>

namespace leasehold::control {

/// Knows which file stood at a path when the socket was made. Another process may remove it and
/// listen there itself; that one's file is then not ours to take away.
/// Threads: one.
class SocketFile {
 public:
  /// To be called right after listening on `path`.
  explicit SocketFile(std::string path);

  /// Removes the file unless it is gone or another one by now. True when it was removed.
  bool remove() const;

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;  ///< 0: there was none.
};

}  // namespace leasehold::control

#include "ipc/control/transport/socket_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace leasehold::control {

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat status{};
  if (::lstat(path_.c_str(), &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

bool SocketFile::remove() const {
  struct stat status{};
  const bool exists = ::lstat(path_.c_str(), &status) == 0;
  if (!exists || status.st_dev != device_ || status.st_ino != inode_) return false;
  return ::unlink(path_.c_str()) == 0;
}

}  // namespace leasehold::control

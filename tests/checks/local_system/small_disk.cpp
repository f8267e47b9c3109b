#include "tests/checks/local_system/small_disk.hpp"

#include <sched.h>
#include <sys/mount.h>

namespace leasehold {

bool mount_small_disk(const std::string& directory, const std::string& size) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", directory.c_str(), "tmpfs", 0, ("mode=0700,size=" + size).c_str()) == 0;
}

}  // namespace leasehold

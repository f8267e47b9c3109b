#include "common/machine/private_directory.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace leasehold {

Result<void> check_private_directory(const struct stat& status, std::string_view kind,
                                     const std::string& directory) {
  if (status.st_uid != ::geteuid()) {
    return fail(Errc::PermissionDenied,
                fmt::format("the {} directory {} belongs to user {}; this program runs as "
                            "user {}, who must own it",
                            kind, directory, status.st_uid, ::geteuid()));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return fail(Errc::PermissionDenied,
              fmt::format("other users may write to the {} directory {} (mode {:04o}); make "
                          "sure that its files belong to user {} and run chmod 0700 {}",
                          kind, directory, status.st_mode & 07777, ::geteuid(), directory));
}

}  // namespace leasehold

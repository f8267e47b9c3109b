/// A directory whose files no other user can replace.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// `kind` is for the message: "state". Errors: PermissionDenied when the directory belongs to
/// another user, or other users may write to it.
Result<void> check_private_directory(const struct stat& status, std::string_view kind,
                                     const std::string& directory);

}  // namespace leasehold

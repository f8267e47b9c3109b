/// A file system of a few MiB, so that a full disk is real.
///
/// Mounting needs root. The mount is seen by the calling thread and the processes that it starts
/// afterwards, and it ends with them (mount_namespaces(7)).
#pragma once

#include <string>

namespace leasehold {

/// Mounts an empty tmpfs of `size` (such as "12m") at the directory. False without the right to.
bool mount_small_disk(const std::string& directory, const std::string& size);

}  // namespace leasehold

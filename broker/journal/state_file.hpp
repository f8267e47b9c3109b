/// What is wrong with the state directory, said to whoever chose it.
#pragma once

#include <string>

#include "common/result.hpp"

namespace leasehold::journal {

/// From the errno with which a file of the state directory could not be opened or written.
/// BadRequest (no such directory, none at all, read-only), PermissionDenied, DiskFull, SystemError;
/// each says what to do next.
std::unexpected<Error> state_file_error(const std::string& path, int error_number);

}  // namespace leasehold::journal

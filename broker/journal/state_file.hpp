/// Small files of the state directory, and what is wrong with it, said to whoever chose it.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::journal {

/// From the errno with which a file of the state directory could not be opened or written.
/// BadRequest (no such directory, none at all, read-only), PermissionDenied, DiskFull, SystemError;
/// each says what to do next.
std::unexpected<Error> state_file_error(const std::string& path, int error_number);

/// Puts the text into the file, mode 0600, for good: written beside it and moved into its place, so
/// that a crash leaves no half of it. Errors: those of state_file_error.
Result<void> write_state_file(const std::string& path, std::string_view text);

}  // namespace leasehold::journal

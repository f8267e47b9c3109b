/// Whole texts that somebody names on a command line or pipes in.
///
/// Errors: FileNotFound and PermissionDenied for a path; BadRequest for one that names no regular
/// file, which could have no end or none yet; MessageTooLarge for more than `max_bytes`;
/// SystemError for what the system refuses, so that a text that cannot be read is never an empty
/// one.
#pragma once

#include <string>

#include "common/result.hpp"

namespace leasehold {

Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes);

/// All of stdin, which may be a pipe or a terminal too.
Result<std::string> read_text_stdin(std::size_t max_bytes);

}  // namespace leasehold

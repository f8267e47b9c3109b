/// Reads whole texts from a path or from stdin.
///
/// Errors: FileNotFound and PermissionDenied for a path; BadRequest for a path that does not name a
/// regular file, because other kinds of files may have no end; MessageTooLarge for more than
/// `max_bytes`; SystemError. A text that cannot be read is an error, never empty.
#pragma once

#include <string>

#include "common/result.hpp"

namespace leasehold {

Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes);

/// Reads a file that decides what this process does, as read_text_file does. Errors: also
/// PermissionDenied for a file that belongs to another user than root or this process's, or that
/// others can write to.
Result<std::string> read_trusted_file(const std::string& path, std::size_t max_bytes);

/// All of stdin, which may be a pipe or a terminal.
Result<std::string> read_text_stdin(std::size_t max_bytes);

}  // namespace leasehold

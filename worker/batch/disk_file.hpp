/// Files of one directory: appends and reads. Errors: those of fail_file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace leasehold::batch {

/// Opens a file of this user, with mode 0600. Symbolic links are refused. `flags` are those of
/// open(2).
Result<UniqueFd> open_file(const std::string& path, int flags);

/// Appends, or leaves the file as it was. `size_bytes` is the file's size before.
Result<void> append_all(int fd, std::string_view bytes, std::uint64_t size_bytes,
                        const std::string& path);

/// Reads up to `size_bytes` at the offset; fewer at the end of the file.
Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size_bytes);

Result<std::uint64_t> size_of(int fd);
Result<void> sync(int fd);

/// The names in a directory. Errors: as open_file.
Result<std::vector<std::string>> names_in(const std::string& directory);
/// The size of the file up to the end of its last whole line.
Result<std::uint64_t> whole_lines(int fd);

}  // namespace leasehold::batch

/// Writes whole files.
///
/// Threads: any. Errors: DiskFull for a full disk, a quota of the file system or a limit of file
/// sizes; otherwise those of fail_file.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

struct ReplaceOptions {
  mode_t mode = 0600;              ///< Of the new file, less the process's umask.
  bool survives_power_cut = true;  ///< Costs a sync of the file and one of its directory.
};

/// Replaces the file or creates it, so that a reader sees either the old text or the new one. After
/// an error the old file remains, unless only the sync of the directory failed.
///
/// The text is written to a new file `<path>.<random>.next`, which then gets the name `path`.
/// Several processes may replace one file; the last one wins. A process that is killed meanwhile
/// leaves the new file. A symbolic link at `path` is replaced, not followed.
Result<void> replace_file(const std::string& path, std::string_view text,
                          const ReplaceOptions& options = {});

/// Writes all bytes at the file's position; `path` is for the error. After an error a part may be
/// written.
Result<void> write_all(int fd, std::string_view bytes, const std::string& path);

/// Makes the names in the directory of `path` survive a power cut, such as one after a rename.
Result<void> sync_directory_of(const std::string& path);

}  // namespace leasehold

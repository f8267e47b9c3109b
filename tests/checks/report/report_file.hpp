/// A file that a program writes at its end, but opens at its start: a wrong path then fails before
/// minutes of work.
///
/// Lifetime: owns the descriptor. Threads: one at a time.
#pragma once

#include <string>
#include <string_view>

#include "common/machine/unique_fd.hpp"

namespace leasehold {

class ReportFile {
 public:
  /// Opens or creates the file. Its old contents stay until write().
  /// Errors: FileNotFound (no such folder), PermissionDenied, DiskFull, SystemError.
  static Result<ReportFile> open(std::string path);

  /// Replaces the contents. Errors: DiskFull, SystemError.
  Result<void> write(std::string_view text) const;

 private:
  ReportFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

}  // namespace leasehold

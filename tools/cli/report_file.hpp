/// A file that a program writes when it is done: opened when it begins, so that nobody works for
/// minutes and then cannot keep what was seen.
///
/// Threads: one at a time.
#pragma once

#include <string>
#include <string_view>

#include "common/unique_fd.hpp"

namespace leasehold::cli {

class ReportFile {
 public:
  /// What is in the file stays until `write`; nobody else's file is made empty for nothing.
  /// Errors: FileNotFound (no such folder), PermissionDenied, DiskFull, SystemError.
  static Result<ReportFile> open(std::string path);

  /// This, and nothing of what was there. Errors: DiskFull, SystemError.
  Result<void> write(std::string_view text) const;

 private:
  ReportFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

}  // namespace leasehold::cli

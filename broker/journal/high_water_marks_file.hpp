/// A second copy of the marks of `Reserved`, outside the journal. If an operator moves the journal
/// away or restores an older copy, no generation or attachment, and so no token, is reused.
///
/// Format: one line of four decimal numbers: generations, attachments, extents, regions.
/// Threads: one.
#pragma once

#include <string>

#include "broker/books/rows.hpp"
#include "common/result.hpp"

namespace leasehold::journal {

/// Renames the marks file of a broker before schema 8, unless the new one exists. The caller holds
/// the lock of the state directory. Errors: those of state_file_error.
Result<void> rename_old_marks_file(const std::string& old_path, const std::string& path);

/// The higher mark of each kind.
Reserved higher(const Reserved& a, const Reserved& b);

class HighWaterMarksFile {
 public:
  /// All marks are zero if there is no file. Errors: FileCorrupt; those of state_file_error.
  static Result<HighWaterMarksFile> open(const std::string& path);

  const Reserved& marks() const { return marks_; }

  /// Durable when it returns. Errors: those of write_state_file; the marks are then unchanged.
  Result<void> raise(const Reserved& marks);

 private:
  HighWaterMarksFile(std::string path, const Reserved& marks)
      : path_(std::move(path)), marks_(marks) {}

  std::string path_;
  Reserved marks_;
};

}  // namespace leasehold::journal

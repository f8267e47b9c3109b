/// The marks of `Reserved` once more, in a file that is not the journal's: who moves a damaged
/// journal away, or puts an older copy back, gets no generation and no attachment twice, and so no
/// token.
///
/// Format: four decimal numbers in a line: generations, attachments, extents, regions. Threads:
/// one.
#pragma once

#include <string>

#include "broker/books/rows.hpp"
#include "common/result.hpp"

namespace leasehold::journal {

/// The higher of each.
Reserved higher(const Reserved& a, const Reserved& b);

class HighWaterMarksFile {
 public:
  /// All marks are zero where there is no file. Errors: FileCorrupt; those of state_file_error.
  static Result<HighWaterMarksFile> open(const std::string& path);

  const Reserved& marks() const { return marks_; }

  /// Durable when it returns. Errors: those of write_state_file; the marks stay as they were.
  Result<void> raise(const Reserved& marks);

 private:
  HighWaterMarksFile(std::string path, const Reserved& marks)
      : path_(std::move(path)), marks_(marks) {}

  std::string path_;
  Reserved marks_;
};

}  // namespace leasehold::journal

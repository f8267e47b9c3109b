/// A second copy of the high-water marks (`HighWaterMarks`), outside the journal. Because of it, no
/// generation or attachment, and so no token, is reused if an operator moves the journal away or
/// restores an older copy.
///
/// A backup holds old marks, and ids were issued after it was made. The file therefore contains its
/// own inode and time of birth. A copy contains those of another file and so is not original. The
/// journal then continues above every id that can have been issued (ids_issued_before).
///
/// Format: one line of six decimal numbers: generations, attachments, extents, regions, inode, time
/// of birth in Unix ns (0 on a file system without it). Threads: one. Source: statx(2).
#pragma once

#include <string>

#include "broker/books/rows.hpp"
#include "broker/journal/state_file.hpp"
#include "common/result.hpp"

namespace leasehold::journal {

/// The higher mark of each kind.
HighWaterMarks higher(const HighWaterMarks& a, const HighWaterMarks& b);

/// Marks above all ids that a broker with a correct clock can have issued before `now_unix_s`. The
/// bound assumes fewer than 2^16 generations, attachments and regions, and fewer than 2^24 extents,
/// for each second since 2026. A start uses at most 1024 ids of each kind and 65 536 extents; a
/// grant uses 1 generation and at most 1024 extents. Generations suffice until 2162. Pure.
HighWaterMarks ids_issued_before(std::int64_t now_unix_s);

class HighWaterMarksFile {
 public:
  /// All marks are zero if there is no file. Errors: FileCorrupt; those of state_file_error.
  static Result<HighWaterMarksFile> open(const std::string& path);

  const HighWaterMarks& marks() const { return marks_; }
  /// False if there is no file, or if the file is a copy.
  bool is_original() const { return is_original_; }

  /// Writes higher marks. The file is durable when this returns, and original. Errors: those of
  /// write_state_file; the marks are then unchanged.
  Result<void> raise(const HighWaterMarks& marks);

 private:
  explicit HighWaterMarksFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  HighWaterMarks marks_;
  bool is_original_ = false;
};

}  // namespace leasehold::journal

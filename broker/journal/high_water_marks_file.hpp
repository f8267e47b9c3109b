/// A second copy of the marks of `Reserved`, outside the journal. If an operator moves the journal
/// away or restores an older copy, no generation or attachment, and so no token, is reused.
///
/// A backup holds the marks of its day, and ids were issued since. The file therefore names itself
/// by inode and time of birth: a copy of it names another file and is not
/// original. The journal then continues above every id that can have been issued
/// (ids_issued_before).
///
/// Format: one line of six decimal numbers: generations, attachments, extents, regions, inode, time
/// of birth in Unix ns (0 on a file system without it). A file of four numbers, from a broker
/// before this rule, counts as original. Threads: one. Source: statx(2).
#pragma once

#include <string>

#include "broker/books/rows.hpp"
#include "broker/journal/state_file.hpp"
#include "common/result.hpp"

namespace leasehold::journal {

/// Renames the marks file of a broker before schema 8, unless the new one exists. The caller holds
/// the lock of the state directory. Errors: those of state_file_error.
Result<void> rename_old_marks_file(const std::string& old_path, const std::string& path);

/// The higher mark of each kind.
Reserved higher(const Reserved& a, const Reserved& b);

/// Marks above all ids that a broker with a correct clock issued before `now_unix_s`: by then it
/// has issued fewer than 2^16 generations, attachments and regions, and 2^24 extents, for each
/// second since 2026. A start takes at most 1024 and 65 536 of them, a grant 1 and 1024.
/// Generations suffice until 2162. Pure.
Reserved ids_issued_before(std::int64_t now_unix_s);

class HighWaterMarksFile {
 public:
  /// All marks are zero if there is no file. Errors: FileCorrupt; those of state_file_error.
  static Result<HighWaterMarksFile> open(const std::string& path);

  const Reserved& marks() const { return marks_; }
  /// False if there is no file, or one that was copied here.
  bool is_original() const { return is_original_; }

  /// Durable when it returns; the file is then original. Errors: those of write_state_file; the
  /// marks are then unchanged.
  Result<void> raise(const Reserved& marks);

 private:
  explicit HighWaterMarksFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  Reserved marks_;
  bool is_original_ = false;
};

}  // namespace leasehold::journal

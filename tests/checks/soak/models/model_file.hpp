/// The model file of one worker, which the soak exchanges and damages while the worker runs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::soak {

/// Threads: one. Errors of every change: SystemError. A change that renames is atomic for readers.
class ModelFile {
 public:
  /// Writes `original` to `path`. `original` must outlive the object.
  static Result<ModelFile> create(std::string path, const std::vector<std::byte>& original);

  const std::string& path() const { return path_; }
  /// True if the file has the original content.
  bool is_whole() const { return is_whole_; }

  /// Renames another file with the original content over it.
  Result<void> copy();
  /// Renames another file with equal shapes and other values over it.
  Result<void> replace();
  /// Writes other values into the second half of the file itself.
  Result<void> rewrite();
  /// Cuts off the second half.
  Result<void> truncate();
  Result<void> remove();

 private:
  ModelFile(std::string path, const std::vector<std::byte>& original)
      : path_(std::move(path)), original_(&original) {}

  std::string path_;
  const std::vector<std::byte>* original_;
  bool is_whole_ = true;
};

/// All bytes of a file. Errors: FileNotFound, SystemError.
Result<std::vector<std::byte>> read_bytes(const std::string& path);

}  // namespace leasehold::soak

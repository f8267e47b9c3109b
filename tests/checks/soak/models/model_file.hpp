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
  /// Writes `original` to `path`. `original` outlives this.
  static Result<ModelFile> create(std::string path, const std::vector<std::byte>& original);

  const std::string& path() const { return path_; }
  /// The file has the original content.
  bool is_whole() const { return is_whole_; }

  /// Another file with the original content takes its name.
  Result<void> copy();
  /// Another file with equal shapes and other values takes its name.
  Result<void> replace();
  /// Its own second half gets other values.
  Result<void> rewrite();
  /// Loses its second half.
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

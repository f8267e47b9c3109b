/// A directory of mode 0700 under TMPDIR, removed with the object.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "common/result.hpp"

namespace leasehold {

/// Threads: one.
class TemporaryDirectory {
 public:
  /// leasehold-NAME-XXXXXX. Errors: SystemError.
  static Result<TemporaryDirectory> create(const std::string& name);

  TemporaryDirectory(TemporaryDirectory&& other) noexcept
      : path_(std::exchange(other.path_, {})), keep_(other.keep_) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();

  const std::filesystem::path& path() const { return path_; }
  /// The path of a file in it.
  std::string file(const std::string& name) const { return path_ / name; }
  /// Leaves the directory on disk, for people who look for the cause of a failure.
  void keep() { keep_ = true; }

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  ///< Empty after a move.
  bool keep_ = false;
};

}  // namespace leasehold

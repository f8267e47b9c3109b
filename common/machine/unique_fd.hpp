/// Owns one file descriptor and closes it.
#pragma once

#include <utility>

#include "common/result.hpp"

namespace leasehold {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

  /// A second descriptor for the same file description, close-on-exec.
  Result<UniqueFd> duplicate() const;

 private:
  int fd_ = -1;
};

}  // namespace leasehold

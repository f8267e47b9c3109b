/// A full disk, simulated by RLIMIT_FSIZE: the kernel refuses the write as it does without space.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstdint>

namespace leasehold::testing {

/// While it exists, no file can grow beyond `size_bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::uintmax_t size_bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{size_bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace leasehold::testing

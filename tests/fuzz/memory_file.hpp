/// A memfd with given bytes and seals.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <span>
#include <string>

#include "common/machine/unique_fd.hpp"
#include "tests/fuzz/input.hpp"

namespace leasehold::fuzz {

/// `seals`: as for fcntl(2).
inline UniqueFd memory_file(std::span<const std::uint8_t> bytes, unsigned seals) {
  UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  check(fd && ::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  if (seals != 0) check(::fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

inline std::string path_of(const UniqueFd& fd) {
  return "/proc/self/fd/" + std::to_string(fd.get());
}

inline UniqueFd read_only(const UniqueFd& fd) {
  return UniqueFd(::open(path_of(fd).c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace leasehold::fuzz

/// A full disk that is real: a file system of a few MiB, mounted in a child process only.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "common/machine/unique_fd.hpp"
#include "tests/checks/local_system/small_disk.hpp"

namespace leasehold::testing {

/// Writes a file until the file system has no space.
inline void fill_disk(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const std::string page(4096, 'x');
  while (::write(fd.get(), page.data(), page.size()) > 0) {
  }
}

/// Runs `steps(path)` in a child process in which `path` is a file system of `size` (such as "4m").
/// It returns 0, or the number of the step that failed: a child has no assertions. Without the
/// right to mount it warns and checks nothing.
template <class Steps>
void check_on_small_disk(const std::string& path, const std::string& size, Steps steps) {
  constexpr int kNoMount = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(mount_small_disk(path, size) ? steps(path) : kNoMount);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoMount) {
    WARN("a small disk cannot be mounted here (that needs root); not checked");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace leasehold::testing

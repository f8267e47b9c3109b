#include "tests/support/temporary_directory.hpp"

#include <cerrno>
#include <cstdlib>

namespace leasehold {

Result<TemporaryDirectory> TemporaryDirectory::create(const std::string& name) {
  std::string pattern = std::filesystem::temp_directory_path() / ("leasehold-" + name + "-XXXXXX");
  if (::mkdtemp(pattern.data()) == nullptr) {
    return fail_errno(Errc::SystemError, "mkdtemp " + pattern, errno);
  }
  return TemporaryDirectory(std::filesystem::path(pattern));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty() && !keep_) std::filesystem::remove_all(path_, ignored);
}

}  // namespace leasehold

#include "tests/checks/report/report_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace leasehold {

Result<ReportFile> ReportFile::open(std::string path) {
  constexpr mode_t kMode = 0666;  // reduced by the umask
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kMode));
  if (!fd) return fail_file("opening " + path, errno);
  return ReportFile(std::move(path), std::move(fd));
}

Result<void> ReportFile::write(std::string_view text) const {
  // EINVAL: a pipe or a terminal cannot be truncated.
  if (::ftruncate(fd_.get(), 0) != 0 && errno != EINVAL)
    return fail_file("emptying " + path_, errno);
  // ESPIPE: a pipe or a terminal has no position.
  if (::lseek(fd_.get(), 0, SEEK_SET) != 0 && errno != ESPIPE)
    return fail_file("rewinding " + path_, errno);
  while (!text.empty()) {
    const ssize_t put = ::write(fd_.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_file("writing " + path_, errno);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

}  // namespace leasehold

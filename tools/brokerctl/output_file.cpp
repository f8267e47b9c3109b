#include "tools/brokerctl/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "common/machine/unique_fd.hpp"

namespace leasehold::brokerctl {
namespace {

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_file("write " + path, errno);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::fsync(fd) != 0) return fail_file("write " + path, errno);
  return {};
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  const UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return fail_file("create " + fresh, errno);
  Result<void> written = write_all(fd.get(), text, fresh);
  if (written && ::rename(fresh.c_str(), path.c_str()) != 0)
    written = fail_file("replace " + path, errno);
  if (!written) ::unlink(fresh.c_str());
  return written;
}

}  // namespace leasehold::brokerctl

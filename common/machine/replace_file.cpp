#include "common/machine/replace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "common/machine/unique_fd.hpp"
#include "common/random.hpp"

namespace leasehold {
namespace {

/// The name is random, because processes of several containers may have the same pid.
std::string temporary_path(const std::string& path) {
  return fmt::format("{}.{:016x}.next", path, random_bits());
}

Result<void> write_new(int fd, std::string_view text, const std::string& path, bool syncs) {
  TRY(write_all(fd, text, path));
  if (syncs && ::fsync(fd) != 0) return fail_file("write " + path, errno);
  return {};
}

}  // namespace

Result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_file("write " + path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> sync_directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string directory = parent.empty() ? "." : parent;
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return fail_file("sync " + directory, errno);
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view text,
                          const ReplaceOptions& options) {
  const std::string next = temporary_path(path);
  const UniqueFd fd(::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, options.mode));
  if (!fd) return fail_file("create " + next, errno);
  Result<void> written = write_new(fd.get(), text, path, options.survives_power_cut);
  if (written && ::rename(next.c_str(), path.c_str()) != 0)
    written = fail_file("replace " + path, errno);
  if (!written) {
    ::unlink(next.c_str());
    return written;
  }
  return options.survives_power_cut ? sync_directory_of(path) : written;
}

}  // namespace leasehold

#include "worker/adapter/file_below.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/expects.hpp"
#include "common/utf8.hpp"
#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {
namespace {

std::unexpected<Error> leaves(std::string_view path) {
  return fail(Errc::BadRequest,
              fmt::format("{} leaves the directory of adapters; name a path below it",
                          printable_excerpt(path)));
}

std::unexpected<Error> cannot_open(std::string_view path, int error_number) {
  const std::string shown = printable_excerpt(path);
  switch (error_number) {
    case ELOOP:
      return fail(Errc::BadRequest,
                  fmt::format("{} passes a symbolic link; name the file itself", shown));
    case ENOENT:
    case ENOTDIR:
      return fail(Errc::FileNotFound,
                  fmt::format("{}: no such adapter file; check the path", shown));
    case EACCES:
      return fail_errno(Errc::PermissionDenied, fmt::format("open {}", shown), error_number);
    default:
      return fail_errno(Errc::SystemError, fmt::format("open {}", shown), error_number);
  }
}

bool is_link(int directory_fd, const std::string& name) {
  struct stat status{};
  return ::fstatat(directory_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(status.st_mode);
}

/// Opens an entry of the directory that is not a link. Sets errno as open(2) does, but always ELOOP
/// for a link.
UniqueFd open_entry(int directory_fd, const std::string& name, int flags) {
  UniqueFd fd(::openat(directory_fd, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
  const int error_number = errno;
  const bool passes_link = !fd && error_number == ENOTDIR && is_link(directory_fd, name);
  errno = passes_link ? ELOOP : error_number;
  return fd;
}

}  // namespace

Result<UniqueFd> open_below(int directory_fd, std::string_view relative_path) {
  if (relative_path.empty() || relative_path.find('\0') != std::string_view::npos)
    return fail(Errc::BadRequest, fmt::format("\"{}\" is not the path of an adapter; name a file",
                                              printable_excerpt(relative_path)));
  if (relative_path.front() == '/') return leaves(relative_path);
  UniqueFd directory;  // the one that the entry before is; at first the caller's
  std::string_view rest = relative_path;
  while (true) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string name(end == 0 ? "." : rest.substr(0, end));
    const bool is_last = end == rest.size();
    if (name == "..") return leaves(relative_path);
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    const int flags = is_last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY;
    UniqueFd entry = open_entry(directory ? directory.get() : directory_fd, name, flags);
    if (!entry) return cannot_open(relative_path, errno);
    if (is_last) return entry;
    directory = std::move(entry);
    rest.remove_prefix(end + 1);
  }
}

bool is_directory(const UniqueFd& fd) {
  struct stat status{};
  return ::fstat(fd.get(), &status) == 0 && S_ISDIR(status.st_mode);
}

Result<FileBelow> FileBelow::adopt(UniqueFd fd, std::string path) {
  const FileIdentity identity = TRY(FileIdentity::of_descriptor(fd, path));
  if (identity.size_bytes == 0) return fail(Errc::FileCorrupt, fmt::format("{}: is empty", path));
  return FileBelow(std::move(fd), std::move(path), identity.size_bytes);
}

Result<void> FileBelow::keep_head(std::uint64_t most_bytes) {
  std::vector<std::byte> head(std::min(most_bytes, size_bytes_));
  TRY(read(0, head));
  head_ = std::move(head);
  return {};
}

Result<void> FileBelow::read(std::uint64_t from, std::span<std::byte> into) const {
  expects(from + into.size() <= size_bytes(), "the range lies in the file");
  std::uint64_t done = 0;
  if (from < head_.size()) {
    const std::span<const std::byte> kept = std::span(head_).subspan(from);
    done = std::min(kept.size(), into.size());
    std::ranges::copy(kept.first(done), into.begin());
  }
  while (done < into.size()) {
    const ssize_t n =
        ::pread(fd_.get(), into.data() + done, into.size() - done, static_cast<off_t>(from + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(Errc::SystemError, fmt::format("pread {}", path_), errno);
    if (n == 0)
      return fail(Errc::FileCorrupt, fmt::format("{}: ends after {} of {} bytes: the file was "
                                                 "truncated after it was opened",
                                                 path_, from + done, size_bytes()));
    done += static_cast<std::uint64_t>(n);
  }
  return {};
}

}  // namespace leasehold

#include "worker/batch/disk_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "common/machine/replace_file.hpp"

namespace leasehold::batch {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;

}  // namespace

Result<UniqueFd> open_file(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_file("open " + path, errno);
  return fd;
}

Result<void> append_all(int fd, std::string_view bytes, std::uint64_t size_bytes,
                        const std::string& path) {
  const auto written = write_all(fd, bytes, path);
  // A torn line that cannot be cut off is cut off at the next start.
  if (!written && ::ftruncate(fd, static_cast<off_t>(size_bytes)) != 0)
    return fail(written.error().code, written.error().detail + "; a torn line is left");
  return written;
}

Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size_bytes) {
  std::string bytes(size_bytes, '\0');
  std::size_t done = 0;
  while (done < size_bytes) {
    const ssize_t got =
        ::pread(fd, bytes.data() + done, size_bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_file("read a file of a batch", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

Result<std::uint64_t> size_of(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return fail_file("read the size of a file", errno);
  return static_cast<std::uint64_t>(status.st_size);
}

Result<void> sync(int fd) {
  if (::fsync(fd) == 0) return {};
  return fail_file("write a file of a batch to the disk", errno);
}

Result<std::vector<std::string>> names_in(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), ::closedir);
  if (!open) return fail_file("list " + directory, errno);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(open.get())) names.emplace_back(entry->d_name);
  return names;
}

Result<std::uint64_t> whole_lines(int fd) {
  std::uint64_t end = TRY(size_of(fd));
  while (end > 0) {
    const std::uint64_t from = end - std::min<std::uint64_t>(end, kPieceBytes);
    const std::string piece = TRY(read_at(fd, from, static_cast<std::size_t>(end - from)));
    const std::size_t last = piece.rfind('\n');
    if (last != std::string::npos) return from + last + 1;
    end = from;
  }
  return 0;
}

}  // namespace leasehold::batch

#include "worker/kv/spill_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace leasehold {
namespace {

std::unexpected<Error> not_a_spill_file(std::string_view what) {
  return fail(Errc::UntrustedSegment,
              fmt::format("the broker's spill file {}; this worker spills nothing", what));
}

}  // namespace

Result<SpillFile> SpillFile::adopt(UniqueFd fd, std::uint64_t size_bytes) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0)
    return fail_errno(Errc::SystemError, "stat of the spill file", errno);
  if (!S_ISREG(status.st_mode)) return not_a_spill_file("is not a regular file");
  if (status.st_nlink != 0) return not_a_spill_file("has a name");
  if (static_cast<std::uint64_t>(status.st_size) != size_bytes) {
    return not_a_spill_file(
        fmt::format("has {} bytes, and {} are lent", status.st_size, size_bytes));
  }
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0) return fail_errno(Errc::SystemError, "flags of the spill file", errno);
  if ((flags & O_ACCMODE) != O_RDWR) return not_a_spill_file("is not open for both ways");
  if ((flags & O_APPEND) != 0) return not_a_spill_file("only takes bytes at its end");
  return SpillFile(std::move(fd), size_bytes);
}

Result<void> SpillFile::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_file("write to the spill file", errno);
    if (put == 0) {
      return fail(Errc::SystemError, fmt::format("a write to the spill file at byte {} wrote "
                                                 "nothing; the sequence stays in swap",
                                                 offset));
    }
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> SpillFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_file("read from the spill file", errno);
    if (got == 0) {
      return fail(Errc::FileCorrupt,
                  fmt::format("the spill file ends at {}, before byte {}; the rows are computed "
                              "again",
                              offset, offset + bytes.size()));
    }
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace leasehold

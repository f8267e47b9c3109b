#include "broker/journal/reserve_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "broker/journal/state_file.hpp"

namespace leasehold::journal {
namespace {

constexpr std::uint64_t kStepBytes = 1u << 20;
constexpr std::int64_t kBytesPerBlock = 512;  // unit of st_blocks, see stat(3type)

std::uint64_t whole_steps(std::uint64_t size_bytes) {
  return (size_bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
}

}  // namespace

Result<ReserveFile> ReserveFile::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return state_file_error(path, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(Errc::SystemError, path, errno);
  // A copied file may be sparse and reserve nothing.
  const bool backed = status.st_blocks * kBytesPerBlock >= status.st_size;
  return ReserveFile(path, std::move(fd), backed ? static_cast<std::uint64_t>(status.st_size) : 0);
}

Result<void> ReserveFile::grow_to(std::uint64_t size_bytes) {
  if (size_bytes <= size_bytes_) return {};
  const std::uint64_t wanted = whole_steps(size_bytes);
  const int error_number = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(wanted));
  if (error_number != 0) {
    (void)!::ftruncate(fd_.get(), static_cast<off_t>(size_bytes_));
    return state_file_error(path_, error_number);
  }
  size_bytes_ = wanted;
  return {};
}

std::uint64_t ReserveFile::missing_bytes(std::uint64_t size_bytes) const {
  return size_bytes <= size_bytes_ ? 0 : whole_steps(size_bytes) - size_bytes_;
}

std::error_code ReserveFile::growth_error(std::uint64_t size_bytes) const {
  const auto end = static_cast<off_t>(size_bytes_);
  const int error_number = ::posix_fallocate(fd_.get(), end, static_cast<off_t>(size_bytes));
  (void)!::ftruncate(fd_.get(), end);
  return {error_number, std::generic_category()};
}

std::uint64_t ReserveFile::file_system_free_bytes() const {
  struct statvfs system{};
  if (::fstatvfs(fd_.get(), &system) != 0) return 0;
  return std::uint64_t{system.f_bfree} * system.f_frsize;
}

void ReserveFile::give_up(std::uint64_t size_bytes) {
  size_bytes_ -= std::min(size_bytes, size_bytes_);
  (void)!::ftruncate(fd_.get(),
                     static_cast<off_t>(size_bytes_));  // a failure shows in the next write
}

}  // namespace leasehold::journal

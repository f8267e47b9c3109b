#include "ipc/region/memory_object.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "ipc/region/mapping.hpp"

namespace leasehold {
namespace {

constexpr mode_t kOwnerReads = 0400;
constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;

Result<struct stat> status_of(const UniqueFd& fd) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(Errc::SystemError, "fstat", errno);
  return status;
}

Result<void> add_seals(const UniqueFd& fd, int seals) {
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) == 0) return {};
  const Errc code = errno == EBUSY ? Errc::StillWritable : Errc::SystemError;
  return fail_errno(code, "fcntl(F_ADD_SEALS)", errno);
}

}  // namespace

Result<MemoryObject> MemoryObject::create(const Spec& spec) {
  UniqueFd fd(::memfd_create(spec.name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno(Errc::SystemError, "memfd_create", errno);
  if (::fchmod(fd.get(), kOwnerReads) != 0) return fail_errno(Errc::SystemError, "fchmod", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(spec.size_bytes)) != 0) {
    return fail_errno(Errc::OutOfMemory, fmt::format("ftruncate to {} bytes", spec.size_bytes),
                      errno);
  }
  TRY(add_seals(fd, spec.final_seals ? kFixedSize | F_SEAL_SEAL : kFixedSize));
  return MemoryObject(std::move(fd), spec.size_bytes);
}

Result<MemoryObject> MemoryObject::adopt(UniqueFd fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kFixedSize) != kFixedSize) {
    return fail(Errc::UntrustedSegment,
                "the received descriptor is not a memfd sealed against resizing");
  }
  const struct stat status = TRY(status_of(fd));
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  return MemoryObject(std::move(fd), size_bytes);
}

Result<UniqueFd> MemoryObject::open_read_only() const {
  const std::string path = fmt::format("/proc/self/fd/{}", fd_.get());
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(Errc::SystemError, "open(" + path + ")", errno);
  return fd;
}

Result<void> MemoryObject::seal_against_writing() {
  return add_seals(fd_, F_SEAL_WRITE | F_SEAL_SEAL);
}

/// Punches whole pages, because the kernel clears a page that is punched in part but does not
/// release it.
Result<void> MemoryObject::punch() {
  const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (size_bytes_ + page - 1) / page * page;
  if (::fallocate(fd_.get(), mode, 0, static_cast<off_t>(bytes)) != 0) {
    return fail_errno(Errc::SystemError, "fallocate(PUNCH_HOLE)", errno);
  }
  return {};
}

Result<std::size_t> MemoryObject::allocated_bytes() const {
  const struct stat status = TRY(status_of(fd_));
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

Result<MemoryIdentity> MemoryObject::identity() const {
  const struct stat status = TRY(status_of(fd_));
  return MemoryIdentity{status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size)};
}

Result<MemoryObject> create_present(const MemoryObject::Spec& spec) {
  MemoryObject object = TRY(MemoryObject::create(spec));
  const Mapping mapping = TRY(Mapping::map(object.fd(), spec.size_bytes, MapAccess::ReadWrite));
  TRY(mapping.prefault(MapAccess::ReadWrite));
  return object;
}

}  // namespace leasehold

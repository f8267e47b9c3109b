#include "ipc/region/locked_mapper.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "common/machine/text_file.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 16;

/// The number of KiB after "VmLck:", in bytes; 0 where the kernel does not say.
std::uint64_t locked_bytes() {
  constexpr std::string_view kField = "VmLck:";
  const auto status = read_text_file("/proc/self/status", kMaxFileBytes);
  const std::size_t found = status ? status->find(kField) : std::string::npos;
  if (found == std::string::npos) return 0;
  const std::size_t digits = status->find_first_of("0123456789", found);
  if (digits == std::string::npos) return 0;
  std::uint64_t kib = 0;
  std::from_chars(status->data() + digits, status->data() + status->size(), kib);
  return kib << 10;
}

LockLimits limits_now() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {};
  return {.limit_bytes = limit.rlim_cur, .locked_bytes = locked_bytes()};
}

Result<void> lock_on_fault(void* begin, std::uint64_t size_bytes) {
  if (::mlock2(begin, size_bytes, MLOCK_ONFAULT) == 0) return {};
  const int error = errno;
  return std::unexpected(lock_error(error, size_bytes, limits_now()));
}

class LockedMapper final : public RegionMapper {
 public:
  Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes, MapAccess access) const override {
    Mapping mapping = TRY(map_host_memory(std::move(fd), size_bytes, access));
    if (access == MapAccess::ReadOnly) TRY(lock_present_pages(mapping));
    return LeasedMapping(std::move(mapping), access);
  }
};

}  // namespace

const RegionMapper& locked_mapper() {
  static const LockedMapper mapper;
  return mapper;
}

Result<void> lock_present_pages(const Mapping& mapping) {
  return lock_on_fault(mapping.data(), mapping.size_bytes());
}

Result<void> check_lockable(std::span<const std::uint64_t> sizes_bytes) {
  // The kernel counts whole pages of each mapping.
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint64_t sum = 0;
  for (const std::uint64_t size_bytes : sizes_bytes) sum += (size_bytes + page - 1) & ~(page - 1);
  if (sum == 0) return {};
  // Locked addresses without pages count, too, so the kernel takes this process's locked memory and
  // privileges into account.
  void* const range =
      ::mmap(nullptr, sum, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return fail_errno(Errc::OutOfMemory, "mmap", errno);
  Result<void> locked = lock_on_fault(range, sum);
  ::munmap(range, sum);
  return locked;
}

Error lock_error(int error, std::uint64_t size_bytes, const LockLimits& limits) {
  const bool is_unlimited = limits.limit_bytes == RLIM_INFINITY;
  const bool is_beyond = !is_unlimited && limits.locked_bytes + size_bytes > limits.limit_bytes;
  if (error != EPERM && !(error == ENOMEM && is_beyond)) {
    return {Errc::OutOfMemory,
            fmt::format("locking {} bytes in memory: {}; free memory, or omit --mlock", size_bytes,
                        std::strerror(error))};
  }
  return {Errc::BadRequest,
          fmt::format("this process may not lock {} bytes more in memory: RLIMIT_MEMLOCK is {}; "
                      "set LimitMEMLOCK=infinity in a drop-in of its unit (`systemctl edit "
                      "leasehold-worker@NAME`), or `ulimit -l unlimited` in a shell, or omit "
                      "--mlock",
                      size_bytes,
                      is_unlimited ? "infinity" : fmt::format("{} bytes", limits.limit_bytes))};
}

}  // namespace leasehold

#include "ipc/region/locked_mapper.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>

namespace leasehold {
namespace {

std::string limit_text() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "infinity" : fmt::format("{} bytes", limit.rlim_cur);
}

std::unexpected<Error> may_not_lock(std::size_t size_bytes) {
  return fail(
      Errc::BadRequest,
      fmt::format("this process may not lock {} bytes more in memory: RLIMIT_MEMLOCK is {}; "
                  "set LimitMEMLOCK=infinity in a drop-in of its unit (`systemctl edit "
                  "leasehold-worker@NAME`), or `ulimit -l unlimited` in a shell, or omit "
                  "--mlock",
                  size_bytes, limit_text()));
}

class LockedMapper final : public RegionMapper {
 public:
  Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes, MapAccess access) const override {
    Mapping mapping = TRY(map_host_memory(std::move(fd), size_bytes, access));
    if (access == MapAccess::ReadOnly && !mapping.lock()) return may_not_lock(size_bytes);
    return LeasedMapping(std::move(mapping), access);
  }
};

}  // namespace

const RegionMapper& locked_mapper() {
  static const LockedMapper mapper;
  return mapper;
}

Result<void> check_lockable(std::size_t size_bytes) {
  if (size_bytes == 0) return {};
  // Addresses without pages count, too: the kernel answers for what is locked already and for
  // privileges.
  void* const range =
      ::mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return fail_errno(Errc::OutOfMemory, "mmap", errno);
  const bool may_lock = ::mlock2(range, size_bytes, MLOCK_ONFAULT) == 0;
  ::munmap(range, size_bytes);
  if (!may_lock) return may_not_lock(size_bytes);
  return {};
}

}  // namespace leasehold

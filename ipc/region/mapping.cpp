#include "ipc/region/mapping.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>

namespace leasehold {
namespace bip = boost::interprocess;
namespace {

/// What Boost.Interprocess asks of a mappable object.
struct DescriptorView {
  int fd;
  bip::mode_t mode;
  bip::mapping_handle_t get_mapping_handle() const { return {fd, false}; }
  bip::mode_t get_mode() const { return mode; }
};

}  // namespace

struct Mapping::Region {
  bip::mapped_region mapped;
};

Mapping Mapping::borrowed() const {
  return Mapping(nullptr, data_, size_bytes_);
}

Mapping::Mapping(std::unique_ptr<Region> region, std::byte* data, std::size_t size_bytes)
    : region_(std::move(region)), data_(data), size_bytes_(size_bytes) {}
Mapping::Mapping(Mapping&&) noexcept = default;
Mapping& Mapping::operator=(Mapping&&) noexcept = default;
Mapping::~Mapping() = default;

Result<Mapping> Mapping::map(const UniqueFd& fd, std::size_t size_bytes, MapAccess access) {
  const auto mode = access == MapAccess::ReadWrite ? bip::read_write : bip::read_only;
  try {
    auto region = std::make_unique<Region>(
        Region{bip::mapped_region(DescriptorView{fd.get(), mode}, mode, 0, size_bytes)});
    auto* data = static_cast<std::byte*>(region->mapped.get_address());
    ::madvise(data, size_bytes, MADV_DONTFORK);
    ::madvise(data, size_bytes, MADV_DONTDUMP);
    return Mapping(std::move(region), data, size_bytes);
  } catch (const bip::interprocess_exception& error) {
    const Errc code =
        error.get_error_code() == bip::out_of_memory_error ? Errc::OutOfMemory : Errc::SystemError;
    return fail(code, fmt::format("mapping {} bytes: {}", size_bytes, error.what()));
  }
}

Result<void> Mapping::prefault(MapAccess access) const {
  const int advice = access == MapAccess::ReadWrite ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  if (::madvise(data_, size_bytes_, advice) != 0) {
    return fail_errno(Errc::OutOfMemory, "madvise(MADV_POPULATE)", errno);
  }
  return {};
}

Result<void> Mapping::lock() const {
  if (::mlock(data_, size_bytes_) != 0) return fail_errno(Errc::SystemError, "mlock", errno);
  return {};
}

Result<LeasedMapping> LeasedMapping::map(const UniqueFd& fd, std::size_t size_bytes,
                                         MapAccess access) {
  return LeasedMapping(TRY(Mapping::map(fd, size_bytes, access)), access);
}

}  // namespace leasehold

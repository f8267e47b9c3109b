#include "ipc/region/region_mapper.hpp"

#include <fmt/format.h>

#include "ipc/region/memory_object.hpp"

namespace leasehold {
namespace {

class HostMapper final : public RegionMapper {
 public:
  Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes, MapAccess access) const override {
    return LeasedMapping(TRY(map_host_memory(std::move(fd), size_bytes, access)), access);
  }
};

}  // namespace

Result<Mapping> map_host_memory(UniqueFd fd, std::size_t size_bytes, MapAccess access) {
  const MemoryObject object = TRY(MemoryObject::adopt(std::move(fd)));
  if (object.size_bytes() != size_bytes) {
    return fail(Errc::UntrustedSegment,
                fmt::format("the received memory has {} bytes, {} were announced",
                            object.size_bytes(), size_bytes));
  }
  const bool is_present = TRY(object.allocated_bytes()) >= size_bytes;
  Mapping mapping = TRY(Mapping::map(object.fd(), size_bytes, access));
  // Memory that was cleared in advance or adopted is present already; it is not collapsed, because
  // each collapse waits for all cores.
  TRY(is_present ? mapping.populate(access) : mapping.prefault(access));
  return mapping;
}

const RegionMapper& host_mapper() {
  static const HostMapper mapper;
  return mapper;
}

}  // namespace leasehold

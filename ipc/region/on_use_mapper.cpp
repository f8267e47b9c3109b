#include "ipc/region/on_use_mapper.hpp"

#include "ipc/region/memory_object.hpp"

namespace leasehold {
namespace {

class OnUseMapper final : public RegionMapper {
 public:
  Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes, MapAccess access) const override {
    MemoryObject object = TRY(MemoryObject::adopt(std::move(fd)));
    const std::size_t allocated_bytes = TRY(object.allocated_bytes());
    if (object.size_bytes() == size_bytes && allocated_bytes < size_bytes)
      return LeasedMapping::map(object.fd(), size_bytes, access);
    return LeasedMapping(TRY(map_host_memory(std::move(object).release(), size_bytes, access)),
                         access);
  }
};

}  // namespace

const RegionMapper& on_use_mapper() {
  static const OnUseMapper mapper;
  return mapper;
}

}  // namespace leasehold

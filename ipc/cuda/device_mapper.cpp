#include "ipc/cuda/device_mapper.hpp"

#include <memory>

#include "ipc/cuda/device_memory.hpp"

namespace leasehold::cuda {
namespace {

struct Mapped final : LeasedMapping::Owner {
  explicit Mapped(DeviceMapping the_mapping) : mapping(std::move(the_mapping)) {}
  DeviceMapping mapping;
};

}  // namespace

Result<LeasedMapping> DeviceMapper::map(UniqueFd fd, std::size_t size_bytes,
                                        MapAccess access) const {
  // The handle is released here; the mapping keeps the memory.
  const DeviceMemory memory = TRY(DeviceMemory::import(*context_, fd, size_bytes));
  auto mapped = std::make_unique<Mapped>(TRY(DeviceMapping::map(memory, access)));
  auto* const address = reinterpret_cast<std::byte*>(mapped->mapping.address());
  return LeasedMapping(std::move(mapped), {address, size_bytes}, access);
}

}  // namespace leasehold::cuda

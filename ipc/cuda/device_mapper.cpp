#include "ipc/cuda/device_mapper.hpp"

#include <memory>

#include "ipc/cuda/device_memory.hpp"

namespace leasehold::cuda {

Result<LeasedMapping> DeviceMapper::map(UniqueFd fd, std::size_t size_bytes,
                                        MapAccess access) const {
  // The handle is released here; the mapping keeps the memory.
  const DeviceMemory memory = TRY(DeviceMemory::import(*context_, fd, size_bytes));
  auto mapping = std::make_shared<DeviceMapping>(TRY(DeviceMapping::map(memory, access)));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are integers
  auto* const address = reinterpret_cast<std::byte*>(mapping->address());
  std::shared_ptr<const void> addresses = mapping->addresses();
  return LeasedMapping(std::move(mapping), {address, size_bytes}, access, std::move(addresses));
}

}  // namespace leasehold::cuda

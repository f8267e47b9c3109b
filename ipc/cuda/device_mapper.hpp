/// Maps memory of a card that the broker lends: import, reserve, map, set access.
///
/// Lifetime: the context outlives the mapper and every mapping it made. Threads: any.
#pragma once

#include "ipc/cuda/context.hpp"
#include "ipc/region/region_mapper.hpp"

namespace leasehold::cuda {

class DeviceMapper final : public RegionMapper {
 public:
  explicit DeviceMapper(const Context& context) : context_(&context) {}

  /// The handles of the mapping hold device addresses.
  Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes, MapAccess access) const override;

 private:
  const Context* context_;
};

}  // namespace leasehold::cuda

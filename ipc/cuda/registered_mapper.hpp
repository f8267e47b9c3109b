/// Maps host memory that a card copies from and to. Maps it as host_mapper does, then registers it
/// with the driver, which pins its pages. Unregisters it before unmapping.
///
/// A pinned page stays with the driver after the memory object's pages are released (punched), so a
/// late copy does not reach memory that is lent again.
///
/// Lifetime: the context outlives the mapper and every mapping it made; the card's copies end
/// before the mapping does. Threads: any. Errors: those of RegionMapper, and of cuda::check when
/// the driver refuses the registration.
/// Source: CUDA Driver API reference, cuMemHostRegister and unified addressing.
#pragma once

#include "ipc/cuda/context.hpp"
#include "ipc/region/region_mapper.hpp"

namespace leasehold::cuda {

class RegisteredMapper final : public RegionMapper {
 public:
  explicit RegisteredMapper(const Context& context) : context_(&context) {}

  /// The handles of the mapping hold host addresses, which the card's copies accept, too.
  Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes, MapAccess access) const override;

 private:
  const Context* context_;
};

}  // namespace leasehold::cuda

/// Maps host memory that a card copies from and to: mapped as by host_mapper, then registered with
/// the driver, which pins its pages. Unregistered before it is unmapped.
///
/// A pinned page stays with the driver after a punch, so a late copy reaches no memory that is lent
/// again.
///
/// Lifetime: the context outlives the mapper and every mapping it made; copies of the card end
/// before the mapping. Threads: any. Errors: those of RegionMapper, and of cuda::check when the
/// driver refuses the registration.
/// Source: CUDA Driver API reference, cuMemHostRegister and unified addressing.
#pragma once

#include "ipc/cuda/context.hpp"
#include "ipc/region/region_mapper.hpp"

namespace leasehold::cuda {

class RegisteredMapper final : public RegionMapper {
 public:
  explicit RegisteredMapper(const Context& context) : context_(&context) {}

  /// The mapping's handles hold addresses of the host, which copies of the card accept too.
  Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes, MapAccess access) const override;

 private:
  const Context* context_;
};

}  // namespace leasehold::cuda

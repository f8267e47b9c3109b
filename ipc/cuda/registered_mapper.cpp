#include "ipc/cuda/registered_mapper.hpp"

#include <fmt/format.h>

#include <memory>

namespace leasehold::cuda {
namespace {

class Registration {
 public:
  static Result<std::shared_ptr<Registration>> make(const Context& context, Mapping mapping,
                                                    MapAccess access) {
    TRY(context.make_current());
    const unsigned flags = access == MapAccess::ReadOnly ? CU_MEMHOSTREGISTER_READ_ONLY : 0;
    const DriverTurn::Long turn(context.turn());
    const CUresult status =
        context.driver().cuMemHostRegister(mapping.data(), mapping.size_bytes(), flags);
    TRY(check(context.driver(), status,
              fmt::format("registering {} bytes of host memory with card {}", mapping.size_bytes(),
                          context.ordinal())));
    return std::make_shared<Registration>(context, std::move(mapping));
  }

  Registration(const Context& context, Mapping mapping)
      : context_(&context), mapping_(std::move(mapping)) {}
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  /// Ignores driver errors: the driver of a failed card refuses every call.
  ~Registration() {
    const DriverTurn::Long turn(context_->turn());
    (void)context_->make_current();
    (void)context_->driver().cuMemHostUnregister(mapping_.data());
  }

  std::span<std::byte> range() const { return {mapping_.data(), mapping_.size_bytes()}; }

 private:
  const Context* context_;
  Mapping mapping_;
};

}  // namespace

Result<LeasedMapping> RegisteredMapper::map(UniqueFd fd, std::size_t size_bytes,
                                            MapAccess access) const {
  Mapping mapping = TRY(map_host_memory(std::move(fd), size_bytes, access));
  std::shared_ptr<Registration> owner =
      TRY(Registration::make(*context_, std::move(mapping), access));
  const std::span<std::byte> range = owner->range();
  return LeasedMapping(std::move(owner), range, access);
}

}  // namespace leasehold::cuda

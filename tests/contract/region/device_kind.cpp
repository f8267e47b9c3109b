#include "ipc/cuda/device_mapper.hpp"
#include "ipc/cuda/device_memory.hpp"
#include "tests/contract/region/region_kind.hpp"

namespace leasehold::testing {
namespace {

class DeviceKind final : public RegionKind {
 public:
  explicit DeviceKind(cuda::Context context) : context_(std::move(context)) {}

  const RegionMapper& mapper() const override { return mapper_; }
  UniqueFd make(std::size_t size_bytes) override {
    const auto memory = required(cuda::DeviceMemory::create(context_, size_bytes));
    UniqueFd fd = required(memory.export_fd());
    return fd;  // the descriptor keeps the memory
  }
  void read(const std::byte* from, std::span<std::byte> to) override {
    const auto& driver = context_.driver();
    check(driver.cuMemcpyDtoHAsync(to.data(), reinterpret_cast<CUdeviceptr>(from), to.size(),
                                   nullptr));
    check(driver.cuCtxSynchronize());
  }
  void write(std::byte* to, std::span<const std::byte> from) override {
    const auto& driver = context_.driver();
    check(driver.cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(to), from.data(), from.size(),
                                   nullptr));
    check(driver.cuCtxSynchronize());
  }

 private:
  void check(CUresult result) const {
    const auto done = cuda::check(context_.driver(), result, "copying");
    if (!done) throw std::runtime_error(done.error().detail);
  }

  cuda::Context context_;
  cuda::DeviceMapper mapper_{context_};
};

}  // namespace

std::unique_ptr<RegionKind> make_region_kind() {
  const cuda::Driver* const driver = required(cuda::load_driver());
  return std::make_unique<DeviceKind>(required(cuda::Context::retain(*driver, 0)));
}

}  // namespace leasehold::testing

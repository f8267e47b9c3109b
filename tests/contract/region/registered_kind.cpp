#include "ipc/cuda/registered_mapper.hpp"
#include "ipc/region/memory_object.hpp"
#include "tests/contract/region/region_kind.hpp"

namespace leasehold::testing {
namespace {

/// Host memory as a card reads and writes it: through a buffer of the card.
class RegisteredKind final : public RegionKind {
 public:
  explicit RegisteredKind(cuda::Context context) : context_(std::move(context)) {}
  ~RegisteredKind() override {
    if (buffer_ != 0) (void)context_.driver().cuMemFree(buffer_);
  }

  const RegionMapper& mapper() const override { return mapper_; }
  UniqueFd make(std::size_t size_bytes) override {
    return required(MemoryObject::create({.name = "region", .size_bytes = size_bytes})).release();
  }
  void read(const std::byte* from, std::span<std::byte> to) override {
    const auto& driver = context_.driver();
    check(driver.cuMemcpyAsync(buffer(), reinterpret_cast<CUdeviceptr>(from), to.size(), nullptr));
    check(driver.cuMemcpyDtoHAsync(to.data(), buffer(), to.size(), nullptr));
    check(driver.cuCtxSynchronize());
  }
  void write(std::byte* to, std::span<const std::byte> from) override {
    const auto& driver = context_.driver();
    check(driver.cuMemcpyHtoDAsync(buffer(), from.data(), from.size(), nullptr));
    check(driver.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), buffer(), from.size(), nullptr));
    check(driver.cuCtxSynchronize());
  }

 private:
  void check(CUresult result) const {
    const auto done = cuda::check(context_.driver(), result, "copying");
    if (!done) throw std::runtime_error(done.error().detail);
  }
  CUdeviceptr buffer() {
    if (buffer_ == 0) check(context_.driver().cuMemAlloc(&buffer_, 4096));
    return buffer_;
  }

  cuda::Context context_;
  cuda::RegisteredMapper mapper_{context_};
  CUdeviceptr buffer_ = 0;
};

}  // namespace

std::unique_ptr<RegionKind> make_region_kind() {
  const cuda::Driver* const driver = required(cuda::load_driver());
  return std::make_unique<RegisteredKind>(required(cuda::Context::retain(*driver, 0)));
}

}  // namespace leasehold::testing

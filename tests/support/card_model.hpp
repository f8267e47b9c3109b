/// Places a local model on the test card. Its memory is the host's, registered with the card.
#pragma once

#include <memory>

#include "ipc/region/memory_object.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "tests/checks/local_model/local_model.hpp"
#include "tests/support/leased_memory.hpp"
#include "tests/support/test_card.hpp"

namespace leasehold::testing {

/// Lifetime: outlives its models. Threads: one.
class CardModel final : public LocalPlacement {
 public:
  explicit CardModel(cuda::CudaOptions options) : options_(std::move(options)) {}

  Result<std::unique_ptr<Backend>> make_backend(const BackendLimits& limits,
                                                const ThreadGate& gate) override {
    auto made = cuda::CudaBackend::create(test_card(), limits, gate, options_);
    if (!made) return std::unexpected(made.error());
    backend_ = made->get();
    return std::unique_ptr<Backend>(*std::move(made));
  }
  Result<LeasedMapping> allocate(std::size_t size_bytes) override {
    const MemoryObject object = required(MemoryObject::create(
        {.name = "card-model", .size_bytes = size_bytes, .final_seals = false}));
    auto memory = std::make_shared<Memory>(
        required(LeasedMapping::map(object.fd(), size_bytes, MapAccess::ReadWrite)));
    memory->reach.add(memory->mapping.base(), size_bytes);
    memory->reach.open();
    const std::span range(address_of(memory->mapping.writable_base()), size_bytes);
    return LeasedMapping(std::move(memory), range, MapAccess::ReadWrite);
  }
  /// Of the newest model.
  const cuda::CudaBackend& backend() const { return *backend_; }

 private:
  struct Memory {
    explicit Memory(LeasedMapping mapped) : mapping(std::move(mapped)) {}
    LeasedMapping mapping;
    DeviceRegistration reach;  // ends before the mapping
  };

  cuda::CudaOptions options_;
  const cuda::CudaBackend* backend_ = nullptr;
};

}  // namespace leasehold::testing

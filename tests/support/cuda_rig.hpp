/// An engine rig whose engine computes on the test card.
///
/// Weights and keys stay in host memory that is registered with the card, so the rest of the rig
/// reads them as usual.
#pragma once

#include "kernels/cuda/cuda_backend.hpp"
#include "tests/support/engine_rig.hpp"
#include "tests/support/test_card.hpp"

namespace leasehold::testing {

inline RigOptions on_card(RigOptions options, cuda::CudaOptions cuda = {}) {
  options.make_backend = [cuda](const BackendLimits& limits, const ThreadGate& gate) {
    Result<std::unique_ptr<cuda::CudaBackend>> made =
        cuda::CudaBackend::create(test_card(), limits, gate, cuda);
    if (!made) throw std::runtime_error(made.error().detail);
    return std::unique_ptr<Backend>(*std::move(made));
  };
  options.reach = [](Leased<const std::byte> at, std::size_t size_bytes) {
    auto reach = std::make_shared<DeviceRegistration>();
    reach->add(at, size_bytes);
    reach->open();
    return std::shared_ptr<void>(std::move(reach));
  };
  return options;
}

}  // namespace leasehold::testing

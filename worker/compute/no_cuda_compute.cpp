#include <fmt/format.h>

#include "worker/compute/compute.hpp"

namespace leasehold {

Result<Compute> make_cuda_compute(const WorkerOptions&, Arithmetic, const Attachment& lent,
                                  const BackendLimits&, const GateDependencies&) {
  return fail(Errc::DeviceUnsupported,
              fmt::format("the broker lends memory of {}, but this worker was built without CUDA; "
                          "build it with the CUDA toolkit, or start the broker with --device cpu",
                          lent.device));
}

}  // namespace leasehold

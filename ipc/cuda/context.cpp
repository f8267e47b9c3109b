#include "ipc/cuda/context.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace leasehold::cuda {

namespace {

Result<CUdevice> open_card(const Driver& driver, int ordinal) {
  int cards = 0;
  TRY(check(driver, driver.cuDeviceGetCount(&cards), "counting the cards"));
  if (ordinal < 0 || ordinal >= cards) {
    return fail(Errc::NoDevice,
                fmt::format("there is no card {}, the driver counts {}; see `nvidia-smi -L`",
                            ordinal, cards));
  }
  CUdevice device = 0;
  TRY(check(driver, driver.cuDeviceGet(&device, ordinal), fmt::format("opening card {}", ordinal)));
  return device;
}

/// True if the card's compute mode excludes this process: a card may be configured to serve one
/// process, or none. The driver returns the same error for that and for a broken card.
bool is_shut_out(const Driver& driver, CUdevice device, CUresult retained) {
  if (retained != CUDA_ERROR_DEVICE_UNAVAILABLE && retained != CUDA_ERROR_UNKNOWN) return false;
  int mode = CU_COMPUTEMODE_DEFAULT;
  const CUresult status =
      driver.cuDeviceGetAttribute(&mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, device);
  return status == CUDA_SUCCESS && mode != CU_COMPUTEMODE_DEFAULT;
}

/// CU_DEVICE_ATTRIBUTE_MPS_ENABLED, which toolkits before 12.2 do not name.
constexpr auto kMpsEnabled = static_cast<CUdevice_attribute>(133);

/// Under MPS the kernels of all clients run in the server's process, so they may outlive a client.
/// A driver too old to know the attribute returns CUDA_ERROR_INVALID_VALUE; the card is then used.
Result<void> refuse_mps(const Driver& driver, CUdevice device, int ordinal) {
  int enabled = 0;
  const CUresult status = driver.cuDeviceGetAttribute(&enabled, kMpsEnabled, device);
  if (status == CUDA_ERROR_INVALID_VALUE) return {};
  TRY(check(driver, status, "asking whether MPS serves the card"));
  if (enabled == 0) return {};
  return fail(Errc::DeviceUnsupported,
              fmt::format("MPS serves card {}, so the exit of a process does not prove that its "
                          "kernels have ended; stop MPS with `echo quit | nvidia-cuda-mps-control`",
                          ordinal));
}

}  // namespace

Result<std::string> uuid_of(const Driver& driver, int ordinal) {
  const CUdevice device = TRY(open_card(driver, ordinal));
  CUuuid uuid{};
  TRY(check(driver, driver.cuDeviceGetUuid(&uuid, device), "reading the card's UUID"));
  constexpr std::array<std::size_t, 5> kGroups{4, 2, 2, 2, 6};
  std::string text = "GPU";
  std::size_t at = 0;
  for (const std::size_t group : kGroups) {
    text += '-';
    for (std::size_t i = 0; i < group; ++i) {
      text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[at++]));
    }
  }
  return text;
}

Result<Context> Context::retain(const Driver& driver, int ordinal) {
  const CUdevice device = TRY(open_card(driver, ordinal));
  TRY(refuse_mps(driver, device, ordinal));
  CUcontext handle = nullptr;
  const CUresult retained = driver.cuDevicePrimaryCtxRetain(&handle, device);
  if (is_shut_out(driver, device, retained)) {
    return fail(Errc::DeviceUnsupported,
                fmt::format("card {} is in compute mode {}, which excludes this process; allow "
                            "several processes with `nvidia-smi -i {} -c DEFAULT`",
                            ordinal, describe(driver, retained), ordinal));
  }
  TRY(check(driver, retained, fmt::format("creating a context on card {}", ordinal)));
  Context context(driver, device, handle, ordinal);
  TRY(context.make_current());
  return context;
}

Context::~Context() {
  if (driver_ != nullptr) driver_->cuDevicePrimaryCtxRelease(device_);
}

Result<void> Context::make_current() const {
  return check(*driver_, driver_->cuCtxSetCurrent(handle_), "making the card's context current");
}

Result<std::string> Context::name() const {
  std::array<char, 256> text{};
  TRY(check(*driver_,
            driver_->cuDeviceGetName(text.data(), static_cast<int>(text.size() - 1), device_),
            "reading the card's name"));
  return std::string(text.data());
}

Result<DeviceMemoryInfo> Context::memory() const {
  TRY(make_current());
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  TRY(check(*driver_, driver_->cuMemGetInfo(&free_bytes, &total_bytes), "querying free memory"));
  return DeviceMemoryInfo{.free_bytes = free_bytes, .total_bytes = total_bytes};
}

}  // namespace leasehold::cuda

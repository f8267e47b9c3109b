#include "ipc/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>
#include <optional>

namespace leasehold::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

#define LEASEHOLD_TEXT_OF(name) #name
// Expands the header's renaming first: cuMemAlloc is looked up as cuMemAlloc_v2.
#define LEASEHOLD_TEXT(name) LEASEHOLD_TEXT_OF(name)

Result<void> look_up(void* library, Driver& driver) {
#define LEASEHOLD_CUDA_LOOKUP(name)                                                              \
  driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(library, LEASEHOLD_TEXT(name))); \
  if (driver.name == nullptr) {                                                                  \
    return fail(Errc::DeviceUnsupported,                                                         \
                fmt::format("the NVIDIA driver has no {}; install a newer driver, or ask for "   \
                            "--device cpu",                                                      \
                            LEASEHOLD_TEXT(name)));                                              \
  }
#define LEASEHOLD_CUDA_LOOKUP_OPTIONAL(name) \
  driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(library, LEASEHOLD_TEXT(name)));
  LEASEHOLD_CUDA_FUNCTIONS(LEASEHOLD_CUDA_LOOKUP)
  LEASEHOLD_CUDA_OPTIONAL_FUNCTIONS(LEASEHOLD_CUDA_LOOKUP_OPTIONAL)
#undef LEASEHOLD_CUDA_LOOKUP
#undef LEASEHOLD_CUDA_LOOKUP_OPTIONAL
  return {};
}

Result<void> start(const Driver& driver) {
  const CUresult initialised = driver.cuInit(0);
  int devices = 0;
  const CUresult counted =
      initialised == CUDA_SUCCESS ? driver.cuDeviceGetCount(&devices) : initialised;
  if (counted == CUDA_SUCCESS && devices > 0) return {};
  const std::string why = counted == CUDA_SUCCESS ? "it finds no card" : describe(driver, counted);
  return fail(Errc::NoDevice,
              fmt::format("the NVIDIA driver offers no card ({}); check `nvidia-smi`, or use "
                          "--device cpu",
                          why));
}

Result<Driver> open_driver() {
  // RTLD_LOCAL hides the library's names from other lookups of the process.
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(Errc::NoDevice, fmt::format("there is no NVIDIA driver ({}); install one, or use "
                                            "--device cpu",
                                            ::dlerror()));
  }
  Driver driver;
  TRY(look_up(library, driver));
  TRY(start(driver));
  return driver;
}

}  // namespace

bool Driver::has_conditional_nodes() const {
#if LEASEHOLD_CUDA_CONDITIONAL_NODES
  return cuGraphConditionalHandleCreate != nullptr && cuGraphAddNode != nullptr;
#else
  return false;
#endif
}

Result<const Driver*> load_driver() {
  static const Result<Driver> driver = open_driver();
  if (!driver) return std::unexpected(driver.error());
  return &*driver;
}

std::string describe(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS) name = nullptr;
  if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS) text = nullptr;
  if (name == nullptr) return fmt::format("CUDA error {}", static_cast<int>(result));
  return fmt::format("{}: {}", name, text == nullptr ? "no description" : text);
}

// Numbers of errors that toolkits before 13 do not name.
constexpr int kContained = 226;
constexpr int kTensorMemoryLeak = 721;

Errc errc_of(CUresult result) {
  if (result == kContained || result == kTensorMemoryLeak) return Errc::DeviceFault;
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return Errc::OutOfMemory;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
      return Errc::NoDevice;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_NOT_SUPPORTED:
      return Errc::DeviceUnsupported;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_UNKNOWN:
      return Errc::DeviceFault;
    default:
      return Errc::SystemError;
  }
}

Result<void> check(const Driver& driver, CUresult result, std::string_view doing) {
  if (result == CUDA_SUCCESS) return {};
  return fail(errc_of(result), fmt::format("{}: {}", doing, describe(driver, result)));
}

}  // namespace leasehold::cuda

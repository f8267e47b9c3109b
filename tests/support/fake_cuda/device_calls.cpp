/// The card's properties, its context, and the names of errors.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "tests/support/fake_cuda/card_memory.hpp"
#include "tests/support/fake_cuda/entry.hpp"
#include "tests/support/fake_cuda/executor.hpp"

using namespace leasehold::fake_cuda;

namespace {

struct ErrorText {
  CUresult result;
  const char* name;
  const char* text;
};

#define FAKE_CUDA_ERROR(name, text) \
  ErrorText {                       \
    name, #name, text               \
  }
constexpr std::array kErrors{
    FAKE_CUDA_ERROR(CUDA_SUCCESS, "no error"),
    FAKE_CUDA_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    FAKE_CUDA_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    FAKE_CUDA_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    FAKE_CUDA_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    FAKE_CUDA_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    FAKE_CUDA_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    FAKE_CUDA_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    FAKE_CUDA_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for the device"),
    FAKE_CUDA_ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed"),
    FAKE_CUDA_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    FAKE_CUDA_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    FAKE_CUDA_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    FAKE_CUDA_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    FAKE_CUDA_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    FAKE_CUDA_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    FAKE_CUDA_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    FAKE_CUDA_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "memory is already registered"),
    FAKE_CUDA_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "memory is not registered"),
    FAKE_CUDA_ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    FAKE_CUDA_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    FAKE_CUDA_ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy"),
    FAKE_CUDA_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef FAKE_CUDA_ERROR

const ErrorText* find_error(CUresult result) {
  const auto at = std::ranges::find(kErrors, result, &ErrorText::result);
  return at == kErrors.end() ? nullptr : &*at;
}

int attribute_of(CUdevice_attribute attribute) {
  // Toolkits before 12.2 do not name it.
  constexpr auto kMpsEnabled = static_cast<CUdevice_attribute>(133);
  const std::map<CUdevice_attribute, int> values{
      {kMpsEnabled, is_under_mps() ? 1 : 0},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7FFF'FFFF},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 * 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, shared_memory_kib() * 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 * 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, card().compute_capability / 10},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, card().compute_capability % 10},
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, compute_mode()},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
  };
  const auto at = values.find(attribute);
  return at == values.end() ? 0 : at->second;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuInit(unsigned flags) {
  FAKE_CUDA_ENTER(cuInit, Nothing);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (card().devices == 0) return CUDA_ERROR_NO_DEVICE;
  set_initialised();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  FAKE_CUDA_ENTER(cuDriverGetVersion, Nothing);
  *version = card().driver_version;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorName(CUresult result, const char** name) {
  const ErrorText* const error = find_error(result);
  *name = error == nullptr ? nullptr : error->name;
  return error == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorString(CUresult result, const char** text) {
  const ErrorText* const error = find_error(result);
  *text = error == nullptr ? nullptr : error->text;
  return error == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  FAKE_CUDA_ENTER(cuDeviceGetCount, Initialised);
  *count = card().devices;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE_CUDA_ENTER(cuDeviceGet, Initialised);
  if (ordinal < 0 || ordinal >= card().devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  FAKE_CUDA_ENTER(cuDeviceGetName, Initialised);
  if (length < 1) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= card().devices) return CUDA_ERROR_INVALID_DEVICE;
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(length) - 1);
  name[length - 1] = 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  FAKE_CUDA_ENTER(cuDeviceGetUuid, Initialised);
  if (device < 0 || device >= card().devices) return CUDA_ERROR_INVALID_DEVICE;
  for (std::size_t i = 0; i < sizeof uuid->bytes; ++i) uuid->bytes[i] = static_cast<char>(0xF0 + i);
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  FAKE_CUDA_ENTER(cuDeviceGetAttribute, Initialised);
  if (device < 0 || device >= card().devices) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute_of(attribute);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE_CUDA_ENTER(cuDevicePrimaryCtxRetain, Device);
  if (device < 0 || device >= card().devices) return CUDA_ERROR_INVALID_DEVICE;
  if (compute_mode() == CU_COMPUTEMODE_PROHIBITED) return CUDA_ERROR_UNKNOWN;
  if (compute_mode() != CU_COMPUTEMODE_DEFAULT) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  *context = retain_context();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  FAKE_CUDA_ENTER(cuDevicePrimaryCtxRelease, Device);
  if (device < 0 || device >= card().devices) return CUDA_ERROR_INVALID_DEVICE;
  return release_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  FAKE_CUDA_ENTER(cuCtxSetCurrent, Device);
  if (context != nullptr && (context != primary_context() || !has_context()))
    return CUDA_ERROR_INVALID_CONTEXT;
  set_current_context(context);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize() {
  FAKE_CUDA_ENTER(cuCtxSynchronize, Context);
  Executor::get().wait_empty(nullptr);
  return lost();
}
}

#include "ipc/cuda/device_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>

namespace leasehold::cuda {
namespace {

constexpr auto kHandleKind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemAllocationProp properties_on(const Context& context) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = kHandleKind;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = context.device();
  return properties;
}

/// The errors that drivers return for a descriptor that is not device memory. CUDA's reference
/// names only "invalid value", but the operating system checks the descriptor first.
bool is_refusal(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_OPERATING_SYSTEM:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

/// Reports a wrong descriptor as an input error, because descriptors arrive over a socket.
Result<void> check_foreign(const Driver& driver, CUresult result, std::string_view doing) {
  if (!is_refusal(result)) return check(driver, result, doing);
  return fail(Errc::UntrustedSegment,
              fmt::format("{}: the received descriptor is not memory of this card, or smaller than "
                          "announced ({})",
                          doing, describe(driver, result)));
}

/// Rounds a size up to the next multiple of the driver's granularity.
Result<std::size_t> rounded_size(const Context& context, std::size_t size_bytes) {
  const CUmemAllocationProp properties = properties_on(context);
  std::size_t unit = 0;
  TRY(check(context.driver(),
            context.driver().cuMemGetAllocationGranularity(&unit, &properties,
                                                           CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            "querying the allocation granularity"));
  if (unit == 0 || size_bytes == 0 || size_bytes > SIZE_MAX - unit) {
    return fail(Errc::BadRequest,
                fmt::format("{} bytes cannot be rounded up to pieces of {}; ask for "
                            "another size",
                            size_bytes, unit));
  }
  return (size_bytes + unit - 1) / unit * unit;
}

}  // namespace

Result<DeviceMemory> DeviceMemory::create(const Context& context, std::size_t size_bytes) {
  TRY(context.make_current());
  const std::size_t rounded = TRY(rounded_size(context, size_bytes));
  const CUmemAllocationProp properties = properties_on(context);
  CUmemGenericAllocationHandle handle = 0;
  TRY(check(context.driver(), context.driver().cuMemCreate(&handle, rounded, &properties, 0),
            fmt::format("allocating {} bytes on card {}", rounded, context.ordinal())));
  return DeviceMemory(context, handle, rounded);
}

Result<DeviceMemory> DeviceMemory::import(const Context& context, const UniqueFd& fd,
                                          std::size_t size_bytes) {
  TRY(context.make_current());
  const std::size_t rounded = TRY(rounded_size(context, size_bytes));
  CUmemGenericAllocationHandle handle = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver takes a descriptor's number as a pointer
  void* const number = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get()));
  const DriverTurn::Long turn(context.turn());
  TRY(check_foreign(context.driver(),
                    context.driver().cuMemImportFromShareableHandle(&handle, number, kHandleKind),
                    "importing memory"));
  return DeviceMemory(context, handle, rounded);
}

DeviceMemory::~DeviceMemory() {
  if (context_ == nullptr) return;
  const DriverTurn::Long turn(context_->turn());
  (void)context_->make_current();
  context_->driver().cuMemRelease(handle_);
}

Result<UniqueFd> DeviceMemory::export_fd() const {
  TRY(context_->make_current());
  int number = -1;
  TRY(check(context_->driver(),
            context_->driver().cuMemExportToShareableHandle(&number, handle_, kHandleKind, 0),
            "exporting memory"));
  UniqueFd fd(number);
  // Without this flag, a child process would hold the memory, too.
  if (::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0)
    return fail_errno(Errc::SystemError, "F_SETFD", errno);
  return fd;
}

Result<DeviceAddresses> DeviceAddresses::reserve(const Context& context, std::size_t size_bytes) {
  TRY(context.make_current());
  CUdeviceptr begin = 0;
  TRY(check(context.driver(), context.driver().cuMemAddressReserve(&begin, size_bytes, 0, 0, 0),
            fmt::format("reserving {} bytes of addresses", size_bytes)));
  return DeviceAddresses(context, begin, size_bytes);
}

DeviceAddresses::~DeviceAddresses() {
  if (context_ == nullptr) return;
  (void)context_->make_current();
  context_->driver().cuMemAddressFree(begin_, size_bytes_);
}

Result<DeviceMapping> DeviceMapping::map(const DeviceMemory& memory, MapAccess access) {
  const Context& context = *memory.context_;
  DeviceMapping mapping(TRY(DeviceAddresses::reserve(context, memory.size_bytes())));
  const DriverTurn::Long turn(context.turn());
  const CUresult mapped =
      context.driver().cuMemMap(mapping.address(), memory.size_bytes(), 0, memory.handle_, 0);
  // Driver 580 answers NOT_SUPPORTED if the memory is smaller than its mapping.
  TRY(check_foreign(context.driver(),
                    mapped == CUDA_ERROR_NOT_SUPPORTED ? CUDA_ERROR_INVALID_VALUE : mapped,
                    fmt::format("mapping {} bytes", memory.size_bytes())));
  mapping.mapped_ = true;
  TRY(mapping.allow(access));
  return mapping;
}

Result<void> DeviceMapping::allow(MapAccess access) const {
  const Context& context = addresses_->context();
  const Driver& driver = context.driver();
  CUmemAccessDesc wanted{};
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = context.device();
  wanted.flags = access == MapAccess::ReadOnly ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                               : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUresult allowed = driver.cuMemSetAccess(address(), size_bytes(), &wanted, 1);
  // Drivers return different errors for unsupported read-only access.
  if (access == MapAccess::ReadOnly && allowed != CUDA_SUCCESS) {
    wanted.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    allowed = driver.cuMemSetAccess(address(), size_bytes(), &wanted, 1);
  }
  return check(driver, allowed, "setting the card's access to memory");
}

DeviceMapping::~DeviceMapping() {
  if (addresses_ == nullptr || !mapped_) return;
  const Context& context = addresses_->context();
  const DriverTurn::Long turn(context.turn());
  (void)context.make_current();
  context.driver().cuMemUnmap(address(), size_bytes());
}

}  // namespace leasehold::cuda

#include "kernels/cuda/kernel_library.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/kernel_image.hpp"

namespace leasehold::cuda {
namespace {

/// The versions for error messages. A driver runs code of its own toolkit's generation and of older
/// ones.
std::string versions(const Driver& driver) {
  const auto text = [](int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  };
  int known = 0;
  if (driver.cuDriverGetVersion(&known) != CUDA_SUCCESS) known = 0;
  return fmt::format("the driver supports CUDA {}, this program was built with CUDA {}",
                     text(known), text(CUDA_VERSION));
}

Error loading_error(const Driver& driver, const KernelImage& image, CUresult result) {
  const Errc code = errc_of(result);
  if (code == Errc::DeviceUnsupported && !has_kernel_code())
    return {code,
            "this build has no CUDA kernels; build with nvcc (preset cuda), or use --device cpu"};
  return {code, fmt::format("kernels '{}' do not load on this card: {}; {}; {}use --device cpu",
                            image.name, describe(driver, result), versions(driver),
                            code == Errc::DeviceUnsupported ? "update the driver, or " : "")};
}

}  // namespace

Result<KernelLibrary> KernelLibrary::load(const Context& context) {
  KernelLibrary library(context);
  for (const KernelImage& image : kernel_images()) {
    if (image.is_optional && !context.driver().has_conditional_nodes()) continue;
    CUmodule module = nullptr;
    const CUresult result = context.driver().cuModuleLoadData(&module, image.bytes.data());
    if (result == CUDA_SUCCESS) {
      library.modules_.emplace_back(context, module);
      library.has_conditional_gate_ |= image.name == kConditionalGateImage;
      continue;
    }
    if (image.is_optional && errc_of(result) == Errc::DeviceUnsupported) continue;
    return std::unexpected(loading_error(context.driver(), image, result));
  }
  library.has_conditional_gate_ &= context.driver().has_conditional_nodes();
  return library;
}

Result<KernelLibrary::Entry> KernelLibrary::look_up(const char* name) const {
  const Driver& driver = context_->driver();
  for (const auto& module : modules_) {
    CUfunction function = nullptr;
    if (driver.cuModuleGetFunction(&function, module.get(), name) != CUDA_SUCCESS) continue;
    int allowed = 0;
    TRY(check(driver,
              driver.cuFuncGetAttribute(&allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        function),
              fmt::format("reading the shared memory limit of {}", name)));
    return Entry{.function = function,
                 .allowed_shared_bytes = static_cast<std::uint32_t>(std::max(allowed, 0))};
  }
  return fail(Errc::DeviceUnsupported,
              fmt::format("this build has no kernel {} for this card; use --device cpu", name));
}

bool KernelLibrary::waits_for_previous() {
  constexpr int kFirstWithWait = 90;
  const Driver& driver = context_->driver();
  int major = 0;
  int code = 0;
  const Result<CUfunction> any = find("lh_rms_norm", 0);
  return any &&
         driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                     context_->device()) == CUDA_SUCCESS &&
         driver.cuFuncGetAttribute(&code, CU_FUNC_ATTRIBUTE_PTX_VERSION, *any) == CUDA_SUCCESS &&
         major >= 9 && code >= kFirstWithWait;
}

/// Also asks for as much shared memory of an SM as the card has, instead of cache: blocks of the
/// next kernel may share the SM, and a change of this share between kernels would wait for them.
Result<void> KernelLibrary::allow_shared(Entry& entry, const char* name,
                                         std::uint32_t shared_bytes) const {
  const Driver& driver = context_->driver();
  TRY(check(
      driver,
      driver.cuFuncSetAttribute(entry.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                static_cast<int>(shared_bytes)),
      fmt::format("reserving {} bytes of shared memory for {}", shared_bytes, name)));
  TRY(check(
      driver,
      driver.cuFuncSetAttribute(entry.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                CU_SHAREDMEM_CARVEOUT_MAX_SHARED),
      fmt::format("preferring shared memory to cache for {}", name)));
  entry.allowed_shared_bytes = shared_bytes;
  return {};
}

Result<CUfunction> KernelLibrary::find(const char* name, std::uint32_t shared_bytes) {
  auto found = functions_.find(name);
  if (found == functions_.end()) {
    const Entry entry = TRY(look_up(name));
    found = functions_.emplace(name, entry).first;
  }
  Entry& entry = found->second;
  if (shared_bytes > entry.allowed_shared_bytes) TRY(allow_shared(entry, name, shared_bytes));
  return entry.function;
}

}  // namespace leasehold::cuda

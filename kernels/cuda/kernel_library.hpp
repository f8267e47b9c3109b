/// Our kernels as functions of one context, by name.
///
/// Lifetime: the context outlives it. Threads: one, with the context current.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "ipc/cuda/context.hpp"

namespace leasehold::cuda {

class KernelLibrary {
 public:
  /// Loads every image. Errors: DeviceUnsupported when none has code for this card.
  static Result<KernelLibrary> load(const Context& context);
  KernelLibrary(KernelLibrary&& other) noexcept = default;
  KernelLibrary& operator=(KernelLibrary&&) = delete;
  ~KernelLibrary();

  /// The function of that name, ready for so much dynamic shared memory.
  /// Errors: DeviceUnsupported when it is in no image, or the card has not that much.
  Result<CUfunction> find(const char* name, std::uint32_t shared_bytes);

 private:
  struct Entry {
    CUfunction function = nullptr;
    std::uint32_t allowed_shared_bytes = 0;  // dynamic; at first 48 KiB less what is static
  };

  explicit KernelLibrary(const Context& context) : context_(&context) {}
  Result<Entry> look_up(const char* name) const;

  const Context* context_;
  std::vector<CUmodule> modules_;
  std::unordered_map<std::string_view, Entry> functions_;  // names are literals
};

}  // namespace leasehold::cuda

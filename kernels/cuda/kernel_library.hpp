/// Finds our kernels by name, as functions of one context.
///
/// Lifetime: the context outlives it. Threads: one at a time, with the context current: the engine
/// thread, or the thread that builds a graph while the engine thread only polls.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/cuda/device_objects.hpp"

namespace leasehold::cuda {

class KernelLibrary {
 public:
  /// Loads every image. Errors: DeviceUnsupported if an image that is not optional has no code for
  /// this card; the driver's if it fails otherwise.
  static Result<KernelLibrary> load(const Context& context);

  /// Returns the function `name`, configured for `shared_bytes` of dynamic shared memory. Errors:
  /// DeviceUnsupported if no image has the function; the driver's error if the card has less shared
  /// memory.
  Result<CUfunction> find(const char* name, std::uint32_t shared_bytes);

  /// Whether kernels wait for the previous kernel themselves, so that they may start before its
  /// end: the card and the code that it runs are of sm_90 or later. A build may also have older
  /// code.
  bool waits_for_previous();

  /// Whether graphs can have conditional nodes: the driver has them and accepted their gate.
  bool has_conditional_gate() const { return has_conditional_gate_; }

 private:
  struct Entry {
    CUfunction function = nullptr;
    std::uint32_t allowed_shared_bytes = 0;  // dynamic; initially 48 KiB minus the static part
  };

  explicit KernelLibrary(const Context& context) : context_(&context) {}
  Result<Entry> look_up(const char* name) const;
  Result<void> allow_shared(Entry& entry, const char* name, std::uint32_t shared_bytes) const;

  const Context* context_;
  bool has_conditional_gate_ = false;
  std::vector<Owned<CUmodule, &Driver::cuModuleUnload>> modules_;
  std::unordered_map<std::string_view, Entry> functions_;  // names live as long as the program
};

}  // namespace leasehold::cuda

/// The device agent's allocations on one card. Answers the broker's calls.
///
/// Lifetime: the context outlives this object; the allocations end with this object. Threads: one.
#pragma once

#include <map>

#include "ipc/control/peer.hpp"
#include "ipc/cuda/memory_cleaner.hpp"

namespace leasehold {

class DeviceAllocations {
 public:
  DeviceAllocations(const cuda::Context& context, cuda::MemoryCleaner cleaner)
      : context_(&context), cleaner_(std::move(cleaner)) {}

  /// Handles one call. Errors: UnknownMethod, BadRequest, those of ipc/control/messages_agent.hpp.
  Result<control::Payload> answer(const std::string& method, const control::Json& params);

 private:
  Result<control::Payload> card() const;
  Result<control::Payload> allocate(const control::Json& params);
  Result<control::Payload> clear(const control::Json& params);
  Result<control::Payload> release(const control::Json& params);
  Result<control::Payload> memory() const;
  Result<std::map<std::uint64_t, cuda::DeviceMemory>::iterator> find(const control::Json& params);

  const cuda::Context* context_;
  cuda::MemoryCleaner cleaner_;
  std::map<std::uint64_t, cuda::DeviceMemory> objects_;
  std::uint64_t next_object_ = 1;
};

}  // namespace leasehold

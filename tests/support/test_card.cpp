#include "tests/support/test_card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>

#include "common/expects.hpp"
#include "tests/support/leased_memory.hpp"

namespace leasehold::testing {
namespace {

/// Registered mappings of the process, and how many DeviceRegistrations name each.
class Registered {
 public:
  static Registered& get() {
    static auto& one = *new Registered;
    return one;
  }

  void take(const HostMapping& mapping) {
    const std::scoped_lock lock(mutex_);
    const std::size_t size_bytes = mapping.end - mapping.begin;
    const auto known = users_.find(mapping.begin);
    if (known != users_.end()) {
      expects(known->second.size_bytes == size_bytes,
              "a registered mapping stays as it is until it is unregistered");
      ++known->second.count;
      return;
    }
    const unsigned access = mapping.is_writable ? 0 : CU_MEMHOSTREGISTER_READ_ONLY;
    required(test_card().make_current());
    required(
        cuda::check(test_card().driver(),
                    test_card().driver().cuMemHostRegister(pointer(mapping.begin), size_bytes,
                                                           CU_MEMHOSTREGISTER_DEVICEMAP | access),
                    fmt::format("registering {} bytes of a test", size_bytes)));
    users_[mapping.begin] = {.size_bytes = size_bytes, .count = 1};
  }

  void release(std::uintptr_t begin) {
    const std::scoped_lock lock(mutex_);
    const auto known = users_.find(begin);
    if (--known->second.count > 0) return;
    users_.erase(known);
    ensures(test_card().make_current().has_value(), "a test makes the card's context current");
    ensures(test_card().driver().cuMemHostUnregister(pointer(begin)) == CUDA_SUCCESS,
            "a test unregisters memory while it is mapped and the card works");
  }

 private:
  struct Use {
    std::size_t size_bytes;
    std::size_t count;
  };
  static void* pointer(std::uintptr_t at) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): /proc names addresses as numbers
    return reinterpret_cast<void*>(at);
  }

  std::mutex mutex_;
  std::map<std::uintptr_t, Use> users_;
};

}  // namespace

const cuda::Context& test_card() {
  static const cuda::Context context = [] {
    const cuda::Driver* const driver = required(cuda::load_driver());
    return required(cuda::Context::retain(*driver, 0));
  }();
  return context;
}

void DeviceRegistration::add(Leased<const std::byte> at, std::size_t size_bytes,
                             ProtectedMemory protected_memory) {
  if (!at || size_bytes == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(address_of(at));
  const auto holds = [&](const HostMapping& one) { return one.contains(first, size_bytes); };
  if (std::ranges::any_of(added_, holds)) return;
  const std::optional<HostMapping> mapping = host_mapping_at(first);
  if (!mapping || !holds(*mapping))
    throw std::runtime_error(
        fmt::format("no mapping holds all {} bytes at {:#x}; register each "
                    "mapping by itself",
                    size_bytes, first));
  if (!mapping->is_readable && protected_memory == ProtectedMemory::Skip) return;
  added_.push_back(*mapping);
}

void DeviceRegistration::open() {
  for (const HostMapping& mapping : added_) {
    if (std::ranges::find(registered_, mapping.begin) != registered_.end()) continue;
    Registered::get().take(mapping);
    registered_.push_back(mapping.begin);
  }
}

DeviceRegistration::~DeviceRegistration() {
  for (const std::uintptr_t begin : registered_) Registered::get().release(begin);
}

}  // namespace leasehold::testing

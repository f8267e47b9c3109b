#include "tests/support/test_card.hpp"

#include <algorithm>
#include <iterator>

#include "tests/support/leased_memory.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uintptr_t kPage = 4096;

}  // namespace

const cuda::Context& test_card() {
  static const cuda::Context context = [] {
    const cuda::Driver* const driver = required(cuda::load_driver());
    return required(cuda::Context::retain(*driver, 0));
  }();
  return context;
}

void DeviceRegistration::add(Leased<const std::byte> at, std::size_t size_bytes) {
  if (!at || size_bytes == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(address_of(at));
  std::uintptr_t begin = first / kPage * kPage;
  std::uintptr_t end = (first + size_bytes + kPage - 1) / kPage * kPage;
  auto next = pages_.upper_bound(begin);
  if (next != pages_.begin() && std::prev(next)->second >= begin) --next;
  while (next != pages_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = pages_.erase(next);
  }
  pages_[begin] = end;
}

void DeviceRegistration::open() {
  const cuda::Driver& driver = test_card().driver();
  for (const auto& [begin, end] : pages_) {
    auto* const at = reinterpret_cast<void*>(begin);
    if (driver.cuMemHostRegister(at, end - begin, CU_MEMHOSTREGISTER_DEVICEMAP) == CUDA_SUCCESS)
      registered_.push_back(at);
  }
  pages_.clear();
}

DeviceRegistration::~DeviceRegistration() {
  for (void* at : registered_) (void)test_card().driver().cuMemHostUnregister(at);
}

}  // namespace leasehold::testing

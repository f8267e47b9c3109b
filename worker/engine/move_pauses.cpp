#include "worker/engine/move_pauses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace leasehold {
namespace {

/// The tenant's next copy waits for this multiple of the last copy's duration, so a tenant's copies
/// take less than a twentieth of the time.
constexpr int kPause = 20;
/// The next copy of any tenant waits for this multiple, so all copies together take at most a fifth
/// of the time.
constexpr int kPauseOfAny = 4;

}  // namespace

Result<void> MovePauses::check(const TenantId& tenant, TimePoint now) {
  std::erase_if(next_, [now](const auto& each) { return each.second <= now; });
  const auto paused = next_.find(tenant);
  const TimePoint own = paused == next_.end() ? TimePoint{} : paused->second;
  const TimePoint next = std::max(own, next_of_any_);
  if (next <= now) return {};
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now);
  const std::string mover = own == next ? "tenant " + tenant.value : std::string("another tenant");
  return std::unexpected(Error{
      .code = Errc::QueueFull,
      .detail = fmt::format("{} moved a request just now; retry in {} ms", mover, wait.count()),
      .retry_after_ms = wait.count()});
}

void MovePauses::note(const TenantId& tenant, TimePoint began, TimePoint ended) {
  next_[tenant] = ended + kPause * (ended - began);
  next_of_any_ = ended + kPauseOfAny * (ended - began);
}

}  // namespace leasehold

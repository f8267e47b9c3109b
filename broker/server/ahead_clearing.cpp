#include "broker/server/ahead_clearing.hpp"

#include <chrono>

#include "broker/decide/clear_ahead.hpp"

namespace leasehold {
namespace {

/// Longer than a grant and a fence take, and shorter than the lifetime of a lease.
constexpr auto kDelay = std::chrono::milliseconds(100);

}  // namespace

void AheadClearing::poll() {
  const Seen now{state_.extents.highest_id(), state_.extents.free_extents()};
  if (limit_bytes_ == 0 || now == seen_) return;
  host_.clear_at_most(now.free_extents);
  if (is_armed_) return;
  is_armed_ = true;
  timer_.expires_after(kDelay);
  timer_.async_wait([this](const boost::system::error_code& error) {
    is_armed_ = false;
    if (error) return;
    seen_ = {state_.extents.highest_id(), state_.extents.free_extents()};
    host_.clear_ahead(extents_to_clear(state_, limit_bytes_), state_.extents.extent_size_bytes());
  });
}

}  // namespace leasehold

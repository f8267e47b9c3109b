#include "worker/serve/logprob_pacer.hpp"

#include <utility>

namespace leasehold {
namespace {

/// Interval at which connections with unread output are checked again.
constexpr Duration kInterval = std::chrono::milliseconds(10);

}  // namespace

void LogprobPacer::sent(const RequestId& engine_request_id, std::uint32_t positions) {
  Untaken& untaken =
      untaken_.try_emplace(engine_request_id, Untaken{.since = clock_->now()}).first->second;
  untaken.positions += positions;
  check();
}

void LogprobPacer::check() {
  for (auto each = untaken_.begin(); each != untaken_.end();) {
    const Reading reading = reading_of(each->first, each->second);
    if (reading == Reading::Waits) {
      ++each;
      continue;
    }
    const auto [id, untaken] = *each;
    each = untaken_.erase(each);
    reading == Reading::Done ? handlers_.on_taken(id, untaken.positions) : handlers_.on_stalled(id);
  }
  if (!untaken_.empty()) check_later();
}

LogprobPacer::Reading LogprobPacer::reading_of(const RequestId& engine_request_id,
                                               const Untaken& untaken) const {
  const auto unread = handlers_.unread_bytes(engine_request_id);
  if (!unread || *unread <= kMaxQueuedBytes) return Reading::Done;
  return clock_->now() < untaken.since + kReadTimeout ? Reading::Waits : Reading::Stalled;
}

void LogprobPacer::check_later() {
  if (std::exchange(is_waiting_, true)) return;
  timer_.expires_after(kInterval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // this object may be destroyed
    is_waiting_ = false;
    check();
  });
}

}  // namespace leasehold

#include "broker/server/memory_returns.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "ipc/control/transport/send_batch.hpp"

namespace leasehold {
namespace {

/// Other events run between turns, because a message takes some µs.
constexpr std::size_t kMostUnmapsInTurn = 64;

}  // namespace

void MemoryReturns::unmap(const effect::SendUnmap& effect) {
  to_unmap_.push_back(effect);
  if (to_unmap_.size() == 1) boost::asio::post(io_, [this] { unmap_all(); });
}

void MemoryReturns::unmap_all() {
  const auto end = to_unmap_.begin() + std::min(to_unmap_.size(), kMostUnmapsInTurn);
  std::vector<effect::SendUnmap> leases(to_unmap_.begin(), end);
  to_unmap_.erase(to_unmap_.begin(), end);
  if (!to_unmap_.empty()) boost::asio::post(io_, [this] { unmap_all(); });
  host_.after_punches([this, leases = std::move(leases)] {
    const control::SendBatch batch;
    for (const effect::SendUnmap& each : leases) handlers_.unmap(each);
  });
}

void MemoryReturns::verify(const effect::VerifyExtents& effect, LentMemory& memory) {
  if (effect.close_anyway) return memory.verify({effect.extents, true}, handlers_.on_verified);
  std::vector<ExtentId>& waiting = to_verify_[effect.pool];
  if (waiting.empty()) {
    boost::asio::post(io_, [this, pool = effect.pool, &memory] { verify_all(pool, memory); });
  }
  waiting.insert(waiting.end(), effect.extents.begin(), effect.extents.end());
}

void MemoryReturns::verify_all(MemoryPool pool, LentMemory& memory) {
  memory.verify({std::exchange(to_verify_[pool], {}), false}, handlers_.on_verified);
}

}  // namespace leasehold

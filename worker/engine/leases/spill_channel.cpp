#include "worker/engine/leases/spill_channel.hpp"

#include <utility>

#include "common/checksum.hpp"

namespace leasehold {
namespace {

/// A checksum of the blocks' layout for the seals of spilled blocks; it differs between layouts.
std::uint64_t seal_layout(const KvLayout& layout) {
  Checksum sum;
  for (const KvLayer& layer : layout.layers())
    for (const std::uint32_t part : {layer.n_kv_heads, layer.head_dim, layer.latent_dim,
                                     static_cast<std::uint32_t>(layer.type)})
      sum.add(&part, sizeof part);
  return sum.value;
}

}  // namespace

SpillChannel::SpillChannel(const KvLayout& layout, Scheduler& scheduler)
    : scheduler_(&scheduler), seals_(seal_layout(layout)) {}

void SpillChannel::lend(SpillStore& store, SpillQueue& queue, SpillLimits limits) {
  store_ = &store;
  queue_ = &queue;
  limits.slots = store.slot_count();
  limits.buffers = store.buffer_count();
  scheduler_->spill().lend(limits);
}

void SpillChannel::take_answers(const Clock& clock) {
  if (queue_ == nullptr) return;
  scheduler_->spill().answered(queue_->take_answers(), clock.now());
  post_jobs();
}

/// A job whose seal cannot be created is posted without one, and its answer is an error. The end of
/// a stream is not posted when the lease's seal is already discarded.
void SpillChannel::post_jobs() {
  for (SpillJob& job : scheduler_->spill().take_jobs()) {
    const bool needs_key = job.kind == SpillJob::Kind::Write || job.kind == SpillJob::Kind::Read;
    if (needs_key) job.seal = seals_.of(job.lease).value_or(nullptr);
    if (job.kind == SpillJob::Kind::End) job.seal = seals_.find(job.lease);
    if (job.kind == SpillJob::Kind::End && job.seal == nullptr) continue;
    queue_->post(std::move(job));
  }
}

void SpillChannel::forget(LeaseId lease) {
  seals_.forget(lease);
  if (store_ != nullptr) store_->forget(lease);
}

}  // namespace leasehold

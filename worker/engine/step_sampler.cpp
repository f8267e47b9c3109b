#include "worker/engine/step_sampler.hpp"

#include <utility>

namespace leasehold {

void StepSample::add(const Sequence& sequence, std::uint32_t n_rows) {
  const PromptRequest& request = sequence.request;
  const std::size_t given = request.prompt.size() + request.emitted.size();
  Tokens& tokens = tenants[request.tenant];
  const bool is_decode = sequence.blocks.committed() >= given;
  (is_decode ? tokens.decode : tokens.prefill) += n_rows;
}

void StepSampler::set_interval(Duration interval) {
  // Relaxed: the slot has its own lock, and no other data depends on the interval.
  interval_ns_.store(interval.count(), std::memory_order_relaxed);
  if (interval != Duration::zero()) return;
  const std::scoped_lock lock(mutex_);
  newest_.reset();
}

bool StepSampler::is_due(TimePoint now) {
  const Duration interval(interval_ns_.load(std::memory_order_relaxed));
  if (interval == Duration::zero() || (last_ && now < *last_ + interval)) return false;
  last_ = now;
  return true;
}

bool StepSampler::put(StepSample sample) {
  const std::scoped_lock lock(mutex_);
  return !std::exchange(newest_, std::move(sample)).has_value();
}

std::optional<StepSample> StepSampler::take() {
  const std::scoped_lock lock(mutex_);
  // A step may have been sampled while the interval was set to zero.
  if (interval_ns_.load(std::memory_order_relaxed) == 0) newest_.reset();
  return std::exchange(newest_, std::nullopt);
}

}  // namespace leasehold

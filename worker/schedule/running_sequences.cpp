#include "worker/schedule/running_sequences.hpp"

#include <algorithm>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {

void RunningSequences::add(std::unique_ptr<Sequence> sequence) {
  expects(sequence != nullptr, "a running sequence exists");
  sequences_.push_back(std::move(sequence));
}

std::unique_ptr<Sequence> RunningSequences::remove(const Sequence& sequence) {
  const auto found = std::ranges::find(sequences_, &sequence, &std::unique_ptr<Sequence>::get);
  expects(found != sequences_.end(), "the sequence runs");
  std::unique_ptr<Sequence> removed = std::move(*found);
  sequences_.erase(found);
  return removed;
}

Sequence* RunningSequences::find(const RequestId& engine_request_id) const {
  const auto found = std::ranges::find_if(sequences_, [&](const auto& each) {
    return each->request.engine_request_id == engine_request_id;
  });
  return found == sequences_.end() ? nullptr : found->get();
}

bool RunningSequences::contains(const Sequence* sequence) const {
  return std::ranges::any_of(sequences_,
                             [sequence](const auto& each) { return each.get() == sequence; });
}

void RunningSequences::logprobs_taken(const RequestId& engine_request_id,
                                      std::uint32_t positions) const {
  Sequence* const sequence = find(engine_request_id);
  if (sequence == nullptr) return;
  sequence->untaken_positions -= std::min(sequence->untaken_positions, positions);
}

bool RunningSequences::has_prompts() const {
  return std::ranges::any_of(sequences_, [](const auto& sequence) {
    return !sequence->is_scavenger && !sequence->is_decoding() && sequence->rows_ready() > 0;
  });
}

}  // namespace leasehold

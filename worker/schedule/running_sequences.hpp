/// The running sequences of a scheduler, in the order of their admission.
///
/// A sequence is in the list from its admission until it ends or is preempted, so a pointer to it
/// is valid while `contains` is true.
///
/// Pure. Threads: one (the engine's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "worker/schedule/sequence.hpp"

namespace leasehold {

class RunningSequences {
 public:
  /// Precondition: the sequence is not null.
  void add(std::unique_ptr<Sequence> sequence);
  /// Precondition: the sequence runs.
  std::unique_ptr<Sequence> remove(const Sequence& sequence);

  /// Null when no such request runs.
  Sequence* find(const RequestId& engine_request_id) const;
  bool contains(const Sequence* sequence) const;
  /// Notes that the client has taken this number of positions of PromptLogprobs. Does nothing
  /// unless the request runs.
  void logprobs_taken(const RequestId& engine_request_id, std::uint32_t positions) const;
  /// True while a running sequence, scavengers apart, has prompt rows to compute. A prompt whose
  /// client does not read its log probabilities, or whose spilled blocks are read back, has none.
  bool has_prompts() const;

  const std::vector<std::unique_ptr<Sequence>>& all() const { return sequences_; }
  auto begin() const { return sequences_.begin(); }
  auto end() const { return sequences_.end(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(sequences_.size()); }
  bool empty() const { return sequences_.empty(); }

 private:
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

}  // namespace leasehold

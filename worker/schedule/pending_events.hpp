/// Events of a scheduler that its engine has not taken yet.
///
/// Pure. Threads: one (the engine's).
#pragma once

#include <utility>
#include <vector>

#include "worker/schedule/events.hpp"

namespace leasehold {

class PendingEvents {
 public:
  void add(Admitted event) { admitted_.push_back(std::move(event)); }
  void add(Token event) { tokens_.push_back(std::move(event)); }
  void add(PromptLogprobs event) { prompt_logprobs_.push_back(std::move(event)); }
  void add(Completed event) { completed_.push_back(std::move(event)); }
  void add(AdmissionRejected event) { rejected_.push_back(std::move(event)); }
  void add(Rebound event) { rebound_.push_back(std::move(event)); }
  void add(Preempted event) { preempted_.push_back(std::move(event)); }

  /// All events since the last call, in the order of events.hpp.
  std::vector<SchedulerEvent> take();

 private:
  template <class Event>
  std::vector<Event> take_final(std::vector<Event>& events) const;

  std::vector<Admitted> admitted_;
  std::vector<Token> tokens_;
  std::vector<PromptLogprobs> prompt_logprobs_;
  std::vector<Completed> completed_;
  std::vector<AdmissionRejected> rejected_;
  std::vector<Rebound> rebound_;
  std::vector<Preempted> preempted_;
};

}  // namespace leasehold

#include "worker/schedule/pending_events.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_set>

namespace leasehold {

/// Takes the events of completed requests. They precede the completions, because a client's stream
/// carries nothing after its end.
template <class Event>
std::vector<Event> PendingEvents::take_final(std::vector<Event>& events) const {
  if (completed_.empty()) return {};
  std::unordered_set<std::string_view> completed;
  for (const Completed& each : completed_) completed.insert(each.engine_request_id.value);
  const auto is_final = [&completed](const Event& event) {
    return completed.contains(event.engine_request_id.value);
  };
  const auto rest = std::stable_partition(events.begin(), events.end(), is_final);
  std::vector<Event> final_events(std::make_move_iterator(events.begin()),
                                  std::make_move_iterator(rest));
  events.erase(events.begin(), rest);
  return final_events;
}

std::vector<SchedulerEvent> PendingEvents::take() {
  std::vector<SchedulerEvent> events;
  const auto append = [&events](auto& from) {
    events.insert(events.end(), std::make_move_iterator(from.begin()),
                  std::make_move_iterator(from.end()));
    from.clear();
  };
  std::vector<PromptLogprobs> final_logprobs = take_final(prompt_logprobs_);
  std::vector<Token> final_tokens = take_final(tokens_);
  append(admitted_);
  append(final_logprobs);
  append(final_tokens);
  append(completed_);
  append(rejected_);
  append(rebound_);
  append(preempted_);
  append(prompt_logprobs_);
  append(tokens_);
  return events;
}

}  // namespace leasehold

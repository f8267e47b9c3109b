#include "worker/schedule/pending_events.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_set>

namespace leasehold {

/// Takes the tokens of completed requests. They precede the completions, because a client's stream
/// carries nothing after its end.
std::vector<Token> PendingEvents::take_final_tokens() {
  if (completed_.empty()) return {};
  std::unordered_set<std::string_view> completed;
  for (const Completed& each : completed_) completed.insert(each.engine_request_id.value);
  const auto is_final = [&completed](const Token& token) {
    return completed.contains(token.engine_request_id.value);
  };
  const auto rest = std::stable_partition(tokens_.begin(), tokens_.end(), is_final);
  std::vector<Token> final_tokens(std::make_move_iterator(tokens_.begin()),
                                  std::make_move_iterator(rest));
  tokens_.erase(tokens_.begin(), rest);
  return final_tokens;
}

std::vector<SchedulerEvent> PendingEvents::take() {
  std::vector<SchedulerEvent> events;
  const auto append = [&events](auto& from) {
    events.insert(events.end(), std::make_move_iterator(from.begin()),
                  std::make_move_iterator(from.end()));
    from.clear();
  };
  std::vector<Token> final_tokens = take_final_tokens();
  append(final_tokens);
  append(completed_);
  append(rejected_);
  append(rebound_);
  append(preempted_);
  append(tokens_);
  return events;
}

}  // namespace leasehold

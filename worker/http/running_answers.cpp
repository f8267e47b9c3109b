#include "worker/http/running_answers.hpp"

#include <algorithm>

namespace leasehold::http {
namespace {

RequestId first_choice_of(const RunningAnswer& answer) {
  const std::string_view id = wire::without_answer_prefix(answer.id);
  return wire::id_in_worker(answer.tenant, {std::string(id)});
}

}  // namespace

std::vector<wire::RequestView> RunningAnswers::views(TimePoint now) const {
  std::vector<wire::RequestView> views;
  for (const RunningAnswer& answer : answers_) {
    for (const RunningChoice& choice : answer.choices()) {
      views.push_back({.id = choice.engine_request_id.value,
                       .state = choice.awaits_lease ? wire::RequestState::AwaitingLease
                                                    : wire::RequestState::Ending,
                       .prompt_tokens = choice.prompt_tokens,
                       .emitted_tokens = choice.emitted_tokens,
                       .age_ms = (now - answer.began_at) / std::chrono::milliseconds(1),
                       .embeds = answer.embeds,
                       .key = answer.key,
                       .answer = answer.id,
                       .x_request_id = answer.x_request_id});
    }
  }
  return views;
}

std::unordered_set<RequestId> RunningAnswers::with_other_choices(
    std::span<const RequestId> ids) const {
  std::unordered_set<RequestId> all(ids.begin(), ids.end());
  for (const RunningAnswer& answer : answers_) {
    const auto choices = answer.choices();
    const auto is_named = [&](const RequestId& id) {
      return std::ranges::find(ids, id) != ids.end();
    };
    const bool has_named =
        is_named(first_choice_of(answer)) ||
        std::ranges::any_of(choices, is_named, &RunningChoice::engine_request_id);
    if (!has_named) continue;
    for (const RunningChoice& choice : choices) all.insert(choice.engine_request_id);
  }
  return all;
}

std::vector<RequestId> RunningAnswers::end(const std::unordered_set<RequestId>& ids,
                                           std::span<const RequestId> stopped, const Error& why) {
  std::vector<RequestId> ended;
  for (const RunningAnswer& answer : answers_) {
    const auto choices = answer.choices();
    const auto is_in = [&](const RunningChoice& choice) {
      return ids.contains(choice.engine_request_id);
    };
    if (!std::ranges::any_of(choices, is_in)) continue;
    const auto runs_elsewhere = [&](const RunningChoice& choice) {
      return std::ranges::find(stopped, choice.engine_request_id) == stopped.end();
    };
    for (const RunningChoice& choice : choices) ended.push_back(choice.engine_request_id);
    answer.end(why, std::ranges::any_of(choices, runs_elsewhere));
  }
  return ended;
}

}  // namespace leasehold::http

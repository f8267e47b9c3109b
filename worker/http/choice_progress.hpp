/// Tracks what the choices of an answer do, and the tokens that they used. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "worker/http/api/api_answer.hpp"
#include "worker/http/generations.hpp"
#include "worker/http/running_answers.hpp"

namespace leasehold::http {

class ChoiceProgress {
 public:
  ChoiceProgress(std::size_t choices, std::uint32_t choices_per_prompt)
      : choices_(choices), per_prompt_(choices_per_prompt) {}

  /// Returns the error if a quota or a full queue keeps all choices from running before the first
  /// token. While one choice runs, the others wait for it. Also BadRequest once the prompts have
  /// more log probabilities than one request may have: writing them delays other connections.
  std::optional<Error> note(const Generations::Event& event);
  /// Counts a token of the choice that another host has generated.
  void note_token(std::size_t index);
  bool any_runs() const { return std::ranges::count(choices_, true, &Choice::runs) > 0; }
  bool all_ended() const { return ended_ == choices_.size(); }
  /// True if no choice can generate anything without another lease.
  bool all_await_lease() const {
    const auto lacking =
        static_cast<std::size_t>(std::ranges::count(choices_, true, &Choice::lacks_lease));
    return lacking > 0 && lacking + ended_ == choices_.size();
  }
  const UsageCount& usage() const { return usage_; }
  /// True if a choice, which has not ended, generates nothing until it has a lease.
  bool any_lacks_lease() const {
    return std::ranges::count(choices_, true, &Choice::lacks_lease) > 0;
  }
  /// The choices that have not ended. `ids` are those of their requests.
  std::vector<RunningChoice> running(std::span<const RequestId> ids) const;

 private:
  struct Choice {
    bool runs = false;        // a worker has the request of the choice
    bool is_counted = false;  // its prompt counts in `usage_`
    bool lacks_lease = true;  // it generates nothing until it has a lease
    bool has_ended = false;
    std::uint32_t prompt_tokens = 0;
    std::uint32_t emitted_tokens = 0;
  };
  std::vector<Choice> choices_;
  std::uint32_t per_prompt_;
  std::size_t ended_ = 0;
  bool has_generated_ = false;       // here, for any choice
  std::size_t prompt_logprobs_ = 0;  // alternatives included
  UsageCount usage_;
};

}  // namespace leasehold::http

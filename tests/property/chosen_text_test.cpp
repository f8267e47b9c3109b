/// With all sampling parameters, a request's text in a batch or after a rebind equals its text
/// alone, and follows its constraints.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/property/chosen_requests.hpp"
#include "worker/text/sampling/generated_text.hpp"

namespace leasehold::testing {
namespace {

struct Answer {
  std::vector<TokenId> tokens;
  CompletionReason reason{};
  bool operator==(const Answer&) const = default;
};

Answer answer_of(EngineRig& rig, const std::string& id) {
  const RequestOutcome& outcome = rig.outcome(id);
  REQUIRE(outcome.completions.size() == 1);
  if (outcome.completions[0].error) INFO(outcome.completions[0].error->detail);
  REQUIRE_FALSE(outcome.completions[0].error);
  return {outcome.tokens, outcome.completions[0].reason};
}

Answer answer_alone(const SamplingParams& sampling) {
  EngineRig rig;
  REQUIRE(rig.submit(sampling_request(rig, sampling, rig.grant("t"), "r")));
  rig.run();
  return answer_of(rig, "r");
}

std::string text_of(const EngineRig& rig, const Answer& answer,
                    std::vector<std::string> stops = {}) {
  GeneratedText text(rig.tokenizer(), {.stop = std::move(stops)});
  std::string all;
  for (const TokenId token : answer.tokens) all += text.push(token);
  return all + text.finish();
}

}  // namespace

TEST_CASE("sampling: a request rebound after any token draws the same tokens") {
  for (std::size_t which = 0; which < all_sampling_params().size(); ++which) {
    const SamplingParams& sampling = all_sampling_params()[which];
    const Answer undisturbed = answer_alone(sampling);
    EngineRig rig;
    for (std::uint32_t cut = 0; cut < undisturbed.tokens.size(); ++cut) {
      CAPTURE(which, cut);
      rig.clear_outcomes();
      const PromptRequest again =
          rebind_after(rig, sampling_request(rig, sampling, rig.grant("t"), "r"), cut);
      rig.run();
      REQUIRE(answer_of(rig, "r") == undisturbed);
      rig.drop(*again.rebound_from);
      rig.drop(again.lease);
    }
  }
}

TEST_CASE("sampling: a request draws the same tokens in a batch as alone") {
  EngineRig rig({.threads = 2});
  const LeaseId lease = rig.grant("t");
  for (std::size_t i = 0; i < all_sampling_params().size(); ++i) {
    REQUIRE(rig.submit(
        sampling_request(rig, all_sampling_params()[i], lease, "r" + std::to_string(i))));
    REQUIRE(rig.step());
  }
  rig.run();
  for (std::size_t i = 0; i < all_sampling_params().size(); ++i) {
    CAPTURE(i);
    REQUIRE(answer_of(rig, "r" + std::to_string(i)) == answer_alone(all_sampling_params()[i]));
  }
}

TEST_CASE("sampling: a text under a JSON schema is valid JSON when it ends") {
  EngineRig rig;
  SamplingParams sampling = all_sampling_params()[6];
  for (sampling.seed = 0; sampling.seed < 12; ++sampling.seed) {
    const std::string id = "r" + std::to_string(sampling.seed);
    REQUIRE(rig.submit(sampling_request(rig, sampling, rig.grant("t"), id)));
    rig.run();
    const Answer answer = answer_of(rig, id);
    if (answer.reason == CompletionReason::MaxTokensReached) continue;
    REQUIRE(answer.reason == CompletionReason::EndOfSequence);
    const auto json = nlohmann::json::parse(text_of(rig, answer), nullptr, false);
    INFO(text_of(rig, answer));
    REQUIRE(json.is_object());
    REQUIRE(json.at("a").is_boolean());
    REQUIRE(json.at("b").is_string());
  }
}

TEST_CASE("sampling: a stop string truncates the text and changes nothing before it") {
  EngineRig rig;
  SamplingParams sampling = all_sampling_params()[2];
  const Answer stopped = answer_alone(sampling);
  REQUIRE(stopped.reason == CompletionReason::StopSequence);
  const std::string text = text_of(rig, stopped, sampling.stop);
  for (const std::string& stop : sampling.stop) REQUIRE_FALSE(text.contains(stop));
  const std::vector<std::string> stops = std::exchange(sampling.stop, {});
  const std::string whole = text_of(rig, answer_alone(sampling));
  REQUIRE(whole.starts_with(text));
  REQUIRE(std::ranges::any_of(
      stops, [&](const std::string& stop) { return whole.substr(text.size()).starts_with(stop); }));
}

TEST_CASE("rebind: a request with its whole text ends at once, for the same reason") {
  EngineRig rig;
  for (const std::size_t which : {0u, 2u, 4u}) {
    const Answer whole = answer_alone(all_sampling_params()[which]);
    REQUIRE((whole.tokens.size() < kSampledTokens) == (which != 0));
    const std::string id = "r" + std::to_string(which);
    PromptRequest again = sampling_request(rig, all_sampling_params()[which], rig.grant("t"), id);
    again.emitted = whole.tokens;
    REQUIRE(rig.submit(again));
    rig.run();
    REQUIRE(answer_of(rig, id) == Answer{{}, whole.reason});
  }
}

TEST_CASE("rebind: a request with a full context ends at once") {
  EngineRig rig;
  PromptRequest whole = sampling_request(rig, all_sampling_params()[0], rig.grant("t"), "r");
  const std::size_t room = rig.config().n_context - whole.prompt.size();
  whole.emitted.assign(room, whole.prompt.back());
  whole.max_emitted_tokens = rig.config().n_context;
  REQUIRE(rig.submit(whole));
  rig.run();
  REQUIRE(answer_of(rig, "r") == Answer{{}, CompletionReason::ContextFull});
}

TEST_CASE("sequence record: the record in the tenant's memory holds all sampling parameters") {
  for (const SamplingParams& sampling : all_sampling_params()) {
    EngineRig rig;
    const LeaseId lease = rig.grant("t");
    PromptRequest request = sampling_request(rig, sampling, lease, "r");
    request.engine_request_id = {"t/r"};
    REQUIRE(rig.submit(request));
    REQUIRE(rig.step());
    const Sequence* sequence = rig.sequence("t/r");
    REQUIRE(sequence != nullptr);
    const auto bytes = rig.bytes_of(lease, sequence->blocks.record_blocks());
    const Result<SequenceRecord> record = read_record(bytes, {rig.config().n_context});
    REQUIRE(record);
    REQUIRE(record->sampling == sampling);
  }
}

TEST_CASE("sampling: every token of a request has log probabilities only if requested") {
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  REQUIRE(rig.submit(sampling_request(rig, all_sampling_params()[0], lease, "with")));
  REQUIRE(rig.submit(sampling_request(rig, all_sampling_params()[1], lease, "without")));
  int delivered = 0;
  while (rig.engine().scheduler().has_work()) {
    const auto report = rig.step();
    REQUIRE(report);
    for (const SchedulerEvent& event : report->events) {
      const auto* token = std::get_if<Token>(&event);
      if (token == nullptr) continue;
      REQUIRE(token->logprobs.has_value() == (token->engine_request_id.value == "with"));
      if (!token->logprobs) continue;
      ++delivered;
      REQUIRE(token->logprobs->top.size() == 3);
      REQUIRE(token->logprobs->chosen <= 0.0f);
    }
  }
  REQUIRE(delivered == static_cast<int>(kSampledTokens));
}

TEST_CASE("sampling: a text has its smallest number of tokens before a stop ends it") {
  EngineRig rig;
  SamplingParams sampling{.ignore_eos = true, .stop = {"e"}};
  const Answer at_once = answer_alone(sampling);
  REQUIRE(at_once.reason == CompletionReason::StopSequence);
  sampling.min_tokens = static_cast<std::uint32_t>(at_once.tokens.size()) + 2;
  const Answer later = answer_alone(sampling);
  REQUIRE(later.reason == CompletionReason::StopSequence);
  REQUIRE(later.tokens.size() > sampling.min_tokens);
  // Stop strings change no token, so the text goes on as it began.
  REQUIRE(std::ranges::equal(at_once.tokens, std::span(later.tokens).first(at_once.tokens.size())));
}

TEST_CASE("sampling: neither an end token nor a stop token is drawn before the smallest number") {
  SamplingParams sampling{.temperature = 1.0f, .logit_bias = {{2, 100.0f}, {301, 100.0f}}};
  sampling.stop_tokens = {301};
  REQUIRE(answer_alone(sampling).tokens.empty());
  sampling.min_tokens = 5;
  const Answer answer = answer_alone(sampling);
  REQUIRE(answer.tokens.size() == 5);
  REQUIRE(answer.reason != CompletionReason::MaxTokensReached);
}

}  // namespace leasehold::testing

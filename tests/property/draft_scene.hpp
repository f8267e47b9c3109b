/// A model beside a draft model, with a greedy request of one tenant and a sampled one of another.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "tests/property/known_texts.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/rig_draft.hpp"
#include "tests/support/unit_watch.hpp"
#include "worker/engine/gate_numbers.hpp"

namespace leasehold::testing {

inline constexpr std::uint32_t kDraftTokens = 40;

inline RigOptions with_draft(RigOptions options, std::string draft_path,
                             std::uint32_t context = 0) {
  options.limits.speculate = kProposed;
  options.limits.max_batch_size = 8;
  options.draft_path = std::move(draft_path);
  options.draft_context = context;
  return options;
}

/// A model with itself as its draft.
inline RigOptions own_draft(const std::string& path, std::uint32_t context = 0) {
  return with_draft({.model_path = path}, path, context);
}
inline RigOptions bundled_draft(std::uint32_t context = 0) {
  return own_draft(bundled_model_path(), context);
}

/// A model whose layers keep a recurrent state.
inline const std::string& recurrent_path() {
  static const GeneratedModel kModel(family_named("qwen35"));
  return kModel.path();
}

inline bool reads_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; });
}

/// A greedy request of one tenant, and a sampled one of another.
class DraftScene {
 public:
  explicit DraftScene(RigOptions options = bundled_draft()) : rig(probed(std::move(options))) {
    greedy = request("t", 20, {.ignore_eos = true});
    sampled = request("u", 12, {.temperature = 1.0f, .seed = 7, .ignore_eos = true});
    REQUIRE(rig.submit(greedy));
    REQUIRE(rig.submit(sampled));
  }
  PromptRequest request(const std::string& tenant, std::size_t prompt,
                        const SamplingParams& sampling) {
    PromptRequest made =
        rig.request(tenant, rig.grant(tenant, 2), tenant + "/r", prompt_of(prompt), kDraftTokens);
    made.sampling = sampling;
    return made;
  }
  static std::vector<TokenId> prompt_of(std::size_t size) {
    std::vector<TokenId> prompt{1};
    for (std::size_t i = 1; i < size; ++i)
      prompt.push_back(static_cast<TokenId>(260 + i * 7 % 190));
    return prompt;
  }
  /// Of both requests, to the end.
  Texts run() {
    rig.run();
    return {rig.outcome("t/r").tokens, rig.outcome("u/r").tokens};
  }
  void run_to(std::size_t tokens) {
    while (rig.outcome("t/r").tokens.size() < tokens) REQUIRE(rig.step());
  }
  std::uint64_t proposed() const {
    return rig.engine().scheduler().proposals().counters().proposed;
  }
  std::uint64_t accepted() const {
    return rig.engine().scheduler().proposals().counters().accepted;
  }

 private:
  RigOptions probed(RigOptions options) {
    options.probe = &watch;
    return options;
  }

 public:
  UnitWatch watch;
  EngineRig rig;
  PromptRequest greedy;
  PromptRequest sampled;
};

inline Texts plain_texts(const RigOptions& options) {
  DraftScene plain(options);
  return plain.run();
}

/// The units of the step that follows once the greedy text has `tokens`.
inline std::vector<WatchedUnit> units_of_step(std::size_t tokens, const RigOptions& options) {
  DraftScene calm(options);
  calm.run_to(tokens);
  calm.watch.start();
  REQUIRE(calm.rig.step());
  calm.watch.stop();
  return calm.watch.units();
}

/// A text of the rig that the engine does not run.
inline Sequence lone_sequence(EngineRig& rig) {
  Sequence sequence(rig.request("t", {}, "r", DraftScene::prompt_of(20), kDraftTokens), 16);
  sequence.admission = 1;
  return sequence;
}

/// What a proposer proposes for one sequence, at its place.
inline std::vector<TokenId> proposed_for(EngineRig& rig, DraftProposer& proposer,
                                         Sequence& sequence) {
  NullRefusalListener ignored;
  GateSet gates(next_gate_number(), rig.running_requests().stops(), ignored);
  gates.add_engine_leases(proposer.leases());
  gates.add_sequence({});
  const PlannedRows part{.sequence = &sequence, .n_proposed = kProposed};
  sequence.proposals.clear();
  proposer.propose({&part, 1}, kProposed, &gates);
  return sequence.proposals;
}

inline const Texts& texts_of(const std::string& path) {
  static std::map<std::string, Texts> texts;
  if (!texts.contains(path)) texts[path] = plain_texts({.model_path = path});
  return texts[path];
}

}  // namespace leasehold::testing

/// A draft model changes no text, and losing it ends nothing but its proposals.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/property/draft_scene.hpp"

namespace leasehold::testing {

TEST_CASE("draft: with the model as its own draft every greedy proposal is right") {
  EngineRig rig(bundled_draft());
  PromptRequest request =
      rig.request("t", rig.grant("t"), "r", DraftScene::prompt_of(20), kDraftTokens);
  REQUIRE(rig.submit(request));
  int steps = 0;
  for (; rig.engine().scheduler().has_work(); ++steps) REQUIRE(rig.step());
  CHECK(rig.outcome("r").tokens == texts_of(bundled_model_path())[0]);
  const ProposalCounters& counters = rig.engine().scheduler().proposals().counters();
  CHECK(counters.accepted == counters.proposed);
  // The first step reads the prompt and gives a token; of the others each gives all it may.
  CHECK(steps == 1 + (kDraftTokens - 1 + kProposed) / (kProposed + 1));
}

TEST_CASE("draft: its backend has every limit of the engine's model, a recurrent state's too") {
  const BackendLimits engine{.max_rows = 9'000,
                             .max_context = 9'001,
                             .n_heads = 9'002,
                             .head_dim = 9'003,
                             .max_width = 90'004,
                             .n_experts = 9'005,
                             .n_experts_used = 9'006,
                             .attention_scratch_bytes = 9'007,
                             .max_logit_rows = 9'008,
                             .rope_dim = 9'009,
                             .n_vocab = 90'010,
                             .n_kv_groups = 9'011,
                             .state_blocks = 9'012,
                             .state_key_dim = 9'013,
                             .adapter_slots = 9'014,
                             .scratch_bytes = 0};
  EngineRig rig(bundled_draft());
  const BackendLimits both = DraftProposer::backend_limits(engine, rig.draft().config());
  CHECK(both.max_rows == engine.max_rows);
  CHECK(both.max_context == engine.max_context);
  CHECK(both.n_heads == engine.n_heads);
  CHECK(both.head_dim == engine.head_dim);
  CHECK(both.max_width == engine.max_width);
  CHECK(both.n_experts == engine.n_experts);
  CHECK(both.n_experts_used == engine.n_experts_used);
  CHECK(both.attention_scratch_bytes == engine.attention_scratch_bytes);
  CHECK(both.max_logit_rows == engine.max_logit_rows);
  CHECK(both.rope_dim == engine.rope_dim);
  CHECK(both.n_vocab == engine.n_vocab);
  CHECK(both.n_kv_groups == engine.n_kv_groups);
  CHECK(both.state_blocks == engine.state_blocks);
  CHECK(both.state_key_dim == engine.state_key_dim);
  CHECK(both.adapter_slots == engine.adapter_slots);
  CHECK(both.scratch_bytes > 0);
}

TEST_CASE("draft: whichever model proposes, the texts are those without it") {
  const GeneratedModel model(family_named("llama"));
  const GeneratedModel alike(family_named("llama, linear"));
  const GeneratedModel wider(family_named("mixtral"));
  const GeneratedModel recurrent(family_named("lfm2"));
  for (const std::uint32_t threads : {0u, 2u}) {
    const RigOptions options{
        .model_path = model.path(), .reference = threads == 0, .threads = std::max(threads, 1u)};
    const Texts expected = plain_texts(options);
    REQUIRE(expected[0].size() == kDraftTokens);
    for (const GeneratedModel* draft : {&model, &alike, &wider, &recurrent}) {
      CAPTURE(threads, draft->path());
      DraftScene scene(with_draft(options, draft->path()));
      CHECK(scene.run() == expected);
      CHECK(scene.proposed() > 0);
      if (draft != &model) CHECK(scene.accepted() < scene.proposed());
    }
  }
}

TEST_CASE("draft: after wrong proposals it proposes what it proposes for the whole text") {
  std::vector<std::string> paths{bundled_model_path()};
  std::vector<std::unique_ptr<GeneratedModel>> recurrent;
  for (const Family& family : kRecurrentFamilies) {
    recurrent.push_back(std::make_unique<GeneratedModel>(family));
    paths.push_back(recurrent.back()->path());
  }
  for (const std::string& path : paths) {
    CAPTURE(path);
    EngineRig rig(own_draft(path));
    const auto proposed = [&](Sequence& sequence) {
      return proposed_for(rig, rig.draft().proposer(), sequence);
    };
    Sequence growing = lone_sequence(rig);
    std::set<std::size_t> rights;
    for (std::uint64_t round = 0; round < 24; ++round) {
      const std::vector<TokenId> proposals = proposed(growing);
      REQUIRE(proposals.size() == kProposed);
      Sequence whole = growing;  // read from its beginning, at another place
      whole.stop_slot = 1;
      whole.admission = 2 + round;
      for (int call = 0; call < 3 && proposed(whole).empty(); ++call) {
      }  // longer than one call reads
      REQUIRE(whole.proposals == proposals);
      std::vector<std::unique_ptr<Sequence>> running;
      running.push_back(std::make_unique<Sequence>(growing));
      rig.draft().proposer().retain(running);
      const std::size_t right = random_at(11, round) % (kProposed + 1);
      rights.insert(right);
      growing.tokens.insert(growing.tokens.end(), proposals.begin(), proposals.begin() + right);
      // Steps without proposals make the text longer, too.
      for (std::uint64_t i = 0; i <= round % 3; ++i)
        growing.tokens.push_back(static_cast<TokenId>(260 + random_at(12 + i, round) % 190));
    }
    CHECK(rights.size() == kProposed + 1);
  }
}

TEST_CASE("draft: a recurrent state proposes nothing for a text twice, and goes on once it grows") {
  EngineRig rig(own_draft(recurrent_path()));
  DraftProposer& proposer = rig.draft().proposer();
  for (const std::size_t right : {std::size_t{0}, std::size_t{2}, std::size_t{kProposed}}) {
    CAPTURE(right);
    Sequence text = lone_sequence(rig);
    const std::vector<TokenId> proposals = proposed_for(rig, proposer, text);
    REQUIRE(proposals.size() == kProposed);
    CHECK(proposed_for(rig, proposer, text).empty());
    text.tokens.insert(text.tokens.end(), proposals.begin(), proposals.begin() + right);
    text.tokens.push_back(300);
    Sequence whole = text;
    whole.stop_slot = 1;
    CHECK(proposed_for(rig, proposer, text) == proposed_for(rig, proposer, whole));
    REQUIRE(text.proposals.size() == kProposed);
    proposer.retain({});
  }
}

TEST_CASE("draft: with recurrent layers and as its own draft every greedy proposal is right") {
  const Arithmetic arithmetic = GENERATE(Arithmetic::F32, Arithmetic::Int8);
  for (const Family& family : kRecurrentFamilies) {
    CAPTURE(family.name, name(arithmetic));
    const GeneratedModel model(family);
    RigOptions options{.model_path = model.path(), .arithmetic = arithmetic};
    const auto text = [&](const RigOptions& with) {
      EngineRig rig(with);
      REQUIRE(rig.submit(
          rig.request("t", rig.grant("t", 2), "r", DraftScene::prompt_of(20), kDraftTokens)));
      rig.run();
      const ProposalCounters& counters = rig.engine().scheduler().proposals().counters();
      CHECK(counters.accepted == counters.proposed);
      CHECK((counters.accepted > kDraftTokens / 2) == !with.draft_path.empty());
      return rig.outcome("r").tokens;
    };
    const std::vector<TokenId> expected = text(options);
    CHECK(text(with_draft(options, model.path())) == expected);
    options.threads = 2;
    options.limits.token_budget = 7;
    CHECK(text(with_draft(options, model.path())) == expected);
  }
}

TEST_CASE("draft: with another type of KV cache the texts are those of that type") {
  const RigOptions options{.kv_type = KvType::F32};
  DraftScene scene(with_draft(options, bundled_model_path()));
  CHECK(scene.rig.draft().config().kv_type == KvType::F32);
  CHECK(scene.run() == plain_texts(options));
  CHECK(scene.accepted() > 0);
  const std::size_t of_floats = scene.rig.draft().config().memory_bytes();
  DraftScene halves;
  CHECK(of_floats == 2 * halves.rig.draft().config().memory_bytes());
}

TEST_CASE("draft: scaled codes as its keys and values change no text") {
  const GeneratedModel model(family_named("qwen3"));
  const RigOptions options{.model_path = model.path(), .kv_type = KvType::Q8_0};
  DraftScene scene(with_draft(options, model.path()));
  CHECK(scene.run() == plain_texts(options));
  CHECK(scene.accepted() > 0);
}

TEST_CASE("draft: one whose lease was revoked before it was bound is off, and says so once") {
  const RigOptions options = bundled_draft();
  EngineRig rig(options);
  RigDraft late(bundled_model_path(), 0, options);
  const LeaseId weights = rig.grant("w", 0), memory = rig.grant("m", 0);
  rig.revoke(memory);
  const auto proposer =
      late.load({.backend = &rig.backend(), .engine_gate = &rig.engine_gate(), .observer = &rig},
                rig.table(), {weights, memory});
  CHECK_FALSE(proposer->is_live());
  Sequence sequence = lone_sequence(rig);
  for (int call = 0; call < 2; ++call) {
    CHECK(proposed_for(rig, *proposer, sequence).empty());
    CHECK(late.losses() == 1);
    CHECK(late.lost() == memory);
  }
  CHECK(reads_zero(late.memory()));
}

TEST_CASE("draft: a text beyond the draft's context goes on without proposals") {
  constexpr std::uint32_t kContext = 36;
  const std::string path = GENERATE(bundled_model_path(), recurrent_path());
  DraftScene scene(own_draft(path, kContext));
  std::uint64_t before = 0;
  while (scene.rig.engine().scheduler().has_work()) {
    const Sequence* greedy = scene.rig.sequence("t/r");
    const Sequence* sampled = scene.rig.sequence("u/r");
    const auto is_beyond = [](const Sequence* sequence) {
      return sequence == nullptr || sequence->tokens.size() > kContext;
    };
    const bool both_beyond = is_beyond(greedy) && is_beyond(sampled) && before > 0;
    REQUIRE(scene.rig.step());
    if (both_beyond) REQUIRE(scene.proposed() == before);
    before = scene.proposed();
  }
  CHECK(before > 0);
  CHECK(scene.run() == texts_of(path));
}

TEST_CASE("draft: a lease of it revoked at any unit of a step ends its proposals and no text") {
  constexpr std::size_t kBefore = 9;
  const std::string path = GENERATE(bundled_model_path(), recurrent_path());
  const RigOptions options = own_draft(path);
  const std::size_t n_units = units_of_step(kBefore, options).size();
  for (const auto which : {RigDraft::OfWeights, RigDraft::OfMemory}) {
    for (std::size_t k = 0; k < n_units; k += 17) {
      CAPTURE(k, n_units, static_cast<int>(which), path);
      DraftScene scene(options);
      scene.run_to(kBefore);
      RigDraft& draft = scene.rig.draft();
      const LeaseId lease = draft.lease(which);
      std::vector<std::byte> at_revocation;
      scene.watch.start(k, [&] {
        scene.rig.revoke(lease);
        scene.watch.act_again(k + 1, [&] { at_revocation = draft.memory(); });
      });
      REQUIRE(scene.rig.step());
      scene.watch.stop();
      REQUIRE_FALSE(draft.proposer().is_live());
      if (k + 1 < n_units && which == RigDraft::OfMemory && !at_revocation.empty())
        REQUIRE(draft.memory() == at_revocation);
      REQUIRE(scene.rig.step());  // at the latest here a unit is refused
      const std::uint64_t proposed = scene.proposed();
      REQUIRE(draft.losses() == 1);
      REQUIRE(draft.lost() == lease);
      scene.rig.fence(lease);
      REQUIRE(scene.rig.engine().unmap_lease(lease));
      REQUIRE_FALSE(scene.rig.engine().unmap_lease(lease));
      REQUIRE(scene.run() == texts_of(path));
      REQUIRE(scene.proposed() == proposed);
      REQUIRE(draft.losses() == 1);
    }
  }
}

TEST_CASE("draft: a tenant revoked in mid-draft ends at once, and the other text goes on") {
  constexpr std::size_t kBefore = 9;
  const std::string path = GENERATE(bundled_model_path(), recurrent_path());
  const RigOptions options = own_draft(path);
  const std::vector<WatchedUnit> units = units_of_step(kBefore, options);
  const auto first_draw = std::ranges::find(units, LaunchSite::Sampling, &WatchedUnit::site);
  const auto drafted = static_cast<std::size_t>(first_draw - units.begin());
  REQUIRE(drafted > 2);
  for (const std::size_t k : {std::size_t{0}, drafted / 2, drafted, drafted + 1}) {
    CAPTURE(k, drafted, path);
    DraftScene scene(options);
    scene.run_to(kBefore);
    scene.watch.start(k, [&] { scene.rig.revoke(scene.greedy.lease); });
    REQUIRE(scene.rig.step());
    scene.watch.stop();
    REQUIRE(scene.rig.completion("t/r").reason == CompletionReason::Revoked);
    const Sequence* other = scene.rig.sequence("u/r");
    REQUIRE(other != nullptr);
    // Stop slots are given in order: the revoked text had the first.
    const std::vector<std::byte> memory = scene.rig.draft().memory();
    const std::size_t of_slot = memory.size() / scene.rig.draft().config().max_batch_size;
    REQUIRE(other->stop_slot == 1);
    REQUIRE(reads_zero(std::span(memory).first(of_slot)));
    REQUIRE_FALSE(reads_zero(std::span(memory).subspan(of_slot, of_slot)));
    REQUIRE(scene.run()[1] == texts_of(path)[1]);
  }
}

TEST_CASE("draft: a long text is read in parts, after a rebind and a move, too") {
  const std::size_t long_prompt = 2 * kDraftPrefillRows + 20;
  const auto prompt = DraftScene::prompt_of(long_prompt);
  const auto text = [&](RigOptions options, bool disturbs) {
    EngineRig rig(std::move(options));
    PromptRequest request = rig.request("t", rig.grant("t", 4), "r", prompt, kDraftTokens);
    REQUIRE(rig.submit(request));
    const auto proposed = [&] { return rig.engine().scheduler().proposals().counters().proposed; };
    const auto steps_without = [&] {
      const std::uint64_t before = proposed();
      int steps = 0;
      while (proposed() == before && rig.engine().scheduler().has_work()) {
        REQUIRE(rig.step());
        ++steps;
      }
      return steps;
    };
    if (disturbs) {
      while (rig.outcome("r").tokens.empty()) REQUIRE(rig.step());
      CHECK(steps_without() == 3);  // the third step has proposals
      rig.revoke(request.lease);
      REQUIRE(rig.step());
      rig.outcome("r").completions.clear();
      request.rebound_from = request.lease;
      request.emitted = rig.outcome("r").tokens;
      request.lease = rig.grant("t", 4);
      REQUIRE(rig.submit(request));
      while (rig.outcome("r").tokens.size() == request.emitted.size()) REQUIRE(rig.step());
      CHECK(steps_without() == 3);
      // A move keeps the sequence, and so what the draft has read of it.
      REQUIRE(rig.engine().move(RequestId{"r"}, rig.grant("t", 4), rig.clock().now()));
      CHECK(steps_without() == 1);
    }
    rig.run();
    return rig.outcome("r").tokens;
  };
  const std::string path = GENERATE(bundled_model_path(), recurrent_path());
  CHECK(text(own_draft(path), true) == text({.model_path = path}, false));
}

TEST_CASE("draft: what it read of a text is cleared when the text has ended") {
  const std::string path = GENERATE(bundled_model_path(), recurrent_path());
  DraftScene scene(own_draft(path));
  scene.run_to(20);
  REQUIRE_FALSE(reads_zero(scene.rig.draft().memory()));
  REQUIRE(scene.run() == texts_of(path));
  REQUIRE(scene.rig.step());
  CHECK(reads_zero(scene.rig.draft().memory()));
}

}  // namespace leasehold::testing

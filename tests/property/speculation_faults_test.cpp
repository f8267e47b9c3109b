/// A disturbed text is the undisturbed one, and nothing but what is committed is seen of a step
/// that computes proposals. The model keeps keys and values only, or a recurrent state, too.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tests/property/chosen_requests.hpp"
#include "tests/property/known_texts.hpp"
#include "tests/support/generated_model.hpp"
#include "worker/kv/sequence_record.hpp"

namespace leasehold::testing {
namespace {

/// Acts at one of the units that draw a token or work on a mask, after its poll.
struct AtDraw final : GateProbe {
  void unit_polled(std::uint32_t, LaunchSite site, std::uint16_t, SequenceMask) override {
    if (site == LaunchSite::Sampling && count++ == at) act();
  }
  int at = 0;
  int count = 0;
  std::function<void()> act;
};

enum class Keeps : std::uint8_t { KeysAndValues, State };

std::string model_that(Keeps keeps) {
  static const GeneratedModel kWithState(family_named("qwen35"));
  return keeps == Keeps::State ? kWithState.path() : bundled_model_path();
}
Keeps any_model() {
  return GENERATE(Keeps::KeysAndValues, Keeps::State);
}

/// Two requests. A test disturbs the first; both texts are known.
class Scene {
 public:
  static constexpr std::uint32_t kTokens = 40;

  explicit Scene(Keeps keeps, KnownTexts::Right right = some_right, bool speculates = true)
      : keeps_(keeps), rig(with_probe(speculates, std::move(right))) {
    victim = request("t", rig.grant("t"), "t/r", 3);
    other = request("u", rig.grant("u"), "u/s", 0);
    REQUIRE(rig.submit(victim));
    REQUIRE(rig.submit(other));
  }
  /// Prompt and emitted tokens of both, undisturbed and in single steps.
  const Texts& texts() const {
    static std::map<Keeps, Texts> known;
    Texts& texts = known[keeps_];
    if (!texts.empty()) return texts;
    Scene calm(keeps_, {}, false);
    calm.rig.run();
    return texts = {calm.text_of(calm.victim), calm.text_of(calm.other)};
  }
  std::vector<TokenId> text_of(const PromptRequest& request) {
    std::vector<TokenId> text = request.prompt;
    const auto& emitted = rig.outcome(request.engine_request_id.value).tokens;
    text.insert(text.end(), emitted.begin(), emitted.end());
    return text;
  }
  void run_to(std::size_t tokens) {
    while (rig.outcome("t/r").tokens.size() < tokens) REQUIRE(rig.step());
  }
  /// The units of the step that follows once the victim has `tokens` tokens.
  std::vector<WatchedUnit> units_of_step_after(std::size_t tokens) {
    run_to(tokens);
    watch.start();
    REQUIRE(rig.step());
    watch.stop();
    return watch.units();
  }
  /// The victim's request goes on under another lease.
  void rebind(LeaseId to) {
    rig.outcome("t/r").completions.clear();
    victim.rebound_from = victim.lease;
    victim.emitted = rig.outcome("t/r").tokens;
    victim.lease = to;
    REQUIRE(rig.submit(victim));
  }
  void check_texts() {
    rig.run();
    CHECK(text_of(victim) == texts()[0]);
    CHECK(text_of(other) == texts()[1]);
    for (const char* id : {"t/r", "u/s"}) {
      CHECK(rig.outcome(id).completions.size() == 1);
      for (std::uint32_t i = 0; i < rig.outcome(id).positions.size(); ++i)
        REQUIRE(rig.outcome(id).positions[i] == i);
    }
  }
  /// Of the victim: what a step that fails must not change.
  struct Seen {
    std::uint32_t committed = 0;
    std::vector<TokenId> tokens;
    std::vector<std::byte> record;
    bool operator==(const Seen&) const = default;
  };
  Seen seen() {
    const Sequence& sequence = *rig.sequence("t/r");
    return {sequence.blocks.committed(), sequence.tokens,
            rig.bytes_of(victim.lease, sequence.blocks.record_blocks())};
  }

 private:
  RigOptions with_probe(bool speculates, KnownTexts::Right right) {
    RigOptions options{.model_path = model_that(keeps_)};
    if (speculates) options = speculating(options, known(texts(), std::move(right)));
    options.probe = &watch;
    return options;
  }
  PromptRequest request(const std::string& tenant, LeaseId lease, const std::string& id,
                        std::size_t prompt) const {
    PromptRequest made = rig.request(tenant, lease, id, rig.encode(prompts()[prompt]), kTokens);
    made.sampling = {.temperature = 1.0f, .seed = prompt, .ignore_eos = true};
    return made;
  }

  Keeps keeps_;

 public:
  UnitWatch watch;
  EngineRig rig;
  PromptRequest victim;
  PromptRequest other;
};

}  // namespace

TEST_CASE("speculation: the record is the sequence after every commit") {
  const Keeps keeps = any_model();
  const bool all = GENERATE(true, false);
  Scene scene(keeps, all ? all_right : some_right);
  std::size_t longest = 0;
  std::uint32_t repeated = 0;
  for (std::size_t before = 0; scene.rig.engine().scheduler().has_work();) {
    const Result<StepReport> report = scene.rig.step();
    REQUIRE(report);
    const Sequence* sequence = scene.rig.sequence("t/r");
    if (sequence == nullptr) continue;
    REQUIRE(report->summary.per_seq_kv_positions[0] == sequence->blocks.committed());
    const std::size_t tokens = scene.rig.outcome("t/r").tokens.size();
    longest = std::max(longest, tokens - before);
    before = tokens;
    const auto bytes = scene.rig.bytes_of(scene.victim.lease, sequence->blocks.record_blocks());
    const Result<SequenceRecord> record = read_record(bytes, {scene.rig.config().n_context});
    REQUIRE(record);
    REQUIRE(record->committed == sequence->blocks.committed());
    REQUIRE(record->tokens == sequence->tokens);
    REQUIRE(std::ranges::equal(record->blocks, sequence->blocks.blocks_of(record->committed)));
    if (tokens > 0) REQUIRE(sequence->is_decoding());
    if (tokens > 0) repeated += sequence->pending() - 1;
  }
  REQUIRE((repeated > 0) == (keeps == Keeps::State && !all));
  REQUIRE(longest > 1);
  if (all) REQUIRE(longest == kProposed + 1);
  scene.check_texts();
}

TEST_CASE("speculation: a lease revoked at any unit of a step commits nothing of it") {
  constexpr std::size_t kBefore = 9;
  const Keeps keeps = any_model();
  Scene calm(keeps, all_right);
  const std::vector<WatchedUnit> units = calm.units_of_step_after(kBefore);
  const std::size_t after = calm.rig.outcome("t/r").tokens.size();
  REQUIRE(units.back().site == LaunchSite::Commit);
  const auto drawing = std::ranges::count(units, LaunchSite::Sampling, &WatchedUnit::site);
  REQUIRE(drawing > 2 + 2);  // more than a row of each, and each row is a unit
  for (std::size_t k = 0; k < units.size(); ++k) {
    if (k % 7 != 0 && k + 16 < units.size()) continue;
    CAPTURE(k, units.size(), name(units[k].site));
    Scene scene(keeps, all_right);
    scene.run_to(kBefore);
    const std::size_t before = scene.rig.outcome("t/r").tokens.size();
    scene.watch.start(k, [&] { scene.rig.revoke(scene.victim.lease); });
    REQUIRE(scene.rig.step());
    scene.watch.stop();
    // The commit has polled already, so its tokens are sent.
    const bool discarded = k + 1 < units.size();
    REQUIRE(scene.rig.outcome("t/r").tokens.size() == (discarded ? before : after));
    REQUIRE(scene.rig.step());
    REQUIRE(scene.rig.completion("t/r").reason == CompletionReason::Revoked);
    scene.rebind(scene.rig.grant("t"));
    scene.check_texts();
  }
}

TEST_CASE("speculation: a step that the weights fail moves no sequence, and runs again") {
  constexpr std::size_t kBefore = 9;
  const Keeps keeps = any_model();
  Scene calm(keeps);
  const std::size_t n_units = calm.units_of_step_after(kBefore).size();
  for (std::size_t k = n_units - std::min<std::size_t>(n_units, 12); k + 1 < n_units; ++k) {
    CAPTURE(k, n_units);
    Scene scene(keeps);
    scene.run_to(kBefore);
    const auto before = scene.seen();
    scene.watch.start(k, [&] { scene.rig.revoke(scene.rig.engine_lease()); });
    REQUIRE(scene.rig.step().error().code == Errc::EngineDecodeFailed);
    scene.watch.stop();
    REQUIRE(scene.seen() == before);
    scene.rig.restore_weights();
    scene.check_texts();
  }
}

TEST_CASE("speculation: rules that followed the rows of a failed step are put back") {
  // A stop string and a grammar are followed while rows are drawn, before the commit decides.
  for (const std::size_t which : {2u, 5u}) {
    const SamplingParams& sampling = all_sampling_params()[which];
    Texts texts;
    const auto text = [&](RigOptions options, AtDraw* probe) {
      options.probe = probe;
      EngineRig rig(options);
      if (probe != nullptr) probe->act = [&rig] { rig.revoke(rig.engine_lease()); };
      const PromptRequest request = sampling_request(rig, sampling, rig.grant("t"), "r");
      REQUIRE(rig.submit(request));
      while (rig.engine().scheduler().has_work())
        if (!rig.step()) REQUIRE(rig.restore_weights() == 1);
      REQUIRE(rig.outcome("r").completions.size() == 1);
      std::vector<TokenId> all = request.prompt;
      for (const TokenId token : rig.outcome("r").tokens) all.push_back(token);
      return all;
    };
    texts = {text({}, nullptr)};
    AtDraw probe;
    for (int at = 0; probe.count >= at; ++at) {
      CAPTURE(which, at);
      probe = AtDraw{};
      probe.at = at;
      REQUIRE(text(speculating({}, known(texts, all_right)), &probe) == texts[0]);
    }
  }
}

TEST_CASE("speculation: a text goes on after a rebind, an adoption or a move at any step") {
  const Keeps keeps = any_model();
  for (std::size_t cut = 1; cut < Scene::kTokens; cut += 3) {
    CAPTURE(cut);
    Scene rebound(keeps);
    rebound.run_to(cut);
    if (rebound.rig.sequence("t/r") == nullptr) continue;  // its last step ended it
    rebound.rig.revoke(rebound.victim.lease);
    REQUIRE(rebound.rig.step());
    rebound.rebind(rebound.rig.grant("t"));
    rebound.check_texts();

    Scene adopted(keeps);
    adopted.run_to(cut);
    const auto [lease, found] = adopted.rig.adopt(adopted.victim.lease, "t");
    REQUIRE(found.records == 1);
    REQUIRE(found.dropped.empty());
    REQUIRE(adopted.rig.step());  // its request has ended with the old lease
    adopted.rebind(lease);
    adopted.check_texts();

    Scene moved(keeps);
    moved.run_to(cut);
    REQUIRE(
        moved.rig.engine().move(RequestId{"t/r"}, moved.rig.grant("t"), moved.rig.clock().now()));
    moved.check_texts();
  }
}

}  // namespace leasehold::testing

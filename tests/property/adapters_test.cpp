/// A text under an adapter has the same bits whatever shares its steps and wherever its blocks
/// were, and ends with the adapter's lease; texts of the base model and of other adapters do not
/// notice.
#include <catch2/catch.hpp>
#include <map>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kRank = 4;
constexpr std::uint32_t kAdaptedTokens = 12;
const std::vector<std::string> kAdapters{"", "first", "second"};  // "": the base model

/// Leases of three tenants, and two adapters.
class AdapterScene {
 public:
  explicit AdapterScene(RigOptions options = BackendUnderTest{}.options()) : rig(with(options)) {
    rig.load_adapter("first", 11, kRank);
    rig.load_adapter("second", 22, kRank);
  }
  static std::string text() { return prompts()[0] + " and " + prompts()[5]; }
  PromptRequest request(const std::string& id, const std::string& adapter, LeaseId lease,
                        const std::string& tenant = "t") {
    PromptRequest made = rig.request(tenant, lease, id, rig.encode(text()), kAdaptedTokens);
    made.sampling = {.temperature = 1.0F, .seed = 3, .ignore_eos = true};
    made.adapter.name = adapter;
    return made;
  }
  void submit(const std::string& id, const std::string& adapter, LeaseId lease) {
    REQUIRE(rig.submit(request(id, adapter, lease)));
  }
  const std::vector<TokenId>& tokens(const std::string& id) { return rig.outcome(id).tokens; }
  /// The prompt of every request.
  std::vector<TokenId> published() const { return rig.encode(text()); }

  UnitWatch watch;
  EngineRig rig;

 private:
  RigOptions with(RigOptions options) {
    options.probe = &watch;
    options.limits.max_adapter_rank = kRank;
    return options;
  }
};

/// The text of a request that runs alone.
const std::vector<TokenId>& alone(const std::string& adapter) {
  static std::map<std::string, std::vector<TokenId>> texts;
  if (const auto known = texts.find(adapter); known != texts.end()) return known->second;
  AdapterScene scene;
  scene.submit("r", adapter, scene.rig.grant("t"));
  scene.rig.run();
  REQUIRE(scene.tokens("r").size() == kAdaptedTokens);
  return texts[adapter] = scene.tokens("r");
}

}  // namespace

TEST_CASE("adapters: each adapter changes the text, and the base model's stays as without them") {
  CHECK(alone("first") != alone("second"));
  CHECK(alone("first") != alone(""));
  CHECK(alone("second") != alone(""));
  EngineRig without(BackendUnderTest{}.options());
  PromptRequest request = without.request("t", without.grant("t"), "r",
                                          without.encode(AdapterScene::text()), kAdaptedTokens);
  request.sampling = {.temperature = 1.0F, .seed = 3, .ignore_eos = true};
  REQUIRE(without.submit(request));
  without.run();
  CHECK(without.outcome("r").tokens == alone(""));
}

TEST_CASE("adapters: a text is the same in every batch, in chunks and on every backend") {
  for (const std::uint32_t threads : {0U, 1U, 3U}) {
    RigOptions options = BackendUnderTest{.threads = threads}.options();
    const bool is_chunked = threads == 1;
    if (is_chunked) options.limits.token_budget = 24;
    CAPTURE(threads);
    AdapterScene scene(options);
    for (int i = 0; i < 2; ++i)
      for (const std::string& adapter : kAdapters)
        scene.submit(adapter + std::to_string(i), adapter, scene.rig.grant("t", 1, 8));
    scene.rig.run();
    for (int i = 0; i < 2; ++i)
      for (const std::string& adapter : kAdapters)
        CHECK(scene.tokens(adapter + std::to_string(i)) == alone(adapter));
  }
}

TEST_CASE("adapters: under one lease no text starts with the blocks of another adapter") {
  AdapterScene scene;
  const LeaseId lease = scene.rig.grant("t");
  for (const char* round : {"cold", "warm"}) {
    for (const std::string& adapter : kAdapters) {
      const std::string id = adapter + round;
      scene.submit(id, adapter, lease);
      scene.rig.run();
      CHECK(scene.tokens(id) == alone(adapter));
      CHECK((scene.rig.completion(id).cached_tokens > 0U) == (round == std::string("warm")));
    }
  }
}

TEST_CASE("adapters: a text that moves to another lease keeps its adapter's bits") {
  AdapterScene scene;
  scene.submit("r", "first", scene.rig.grant("t"));
  while (scene.tokens("r").size() < 4) REQUIRE(scene.rig.step());
  REQUIRE(scene.rig.engine().move({"r"}, scene.rig.grant("t"), scene.rig.clock().now()));
  scene.rig.run();
  CHECK(scene.tokens("r") == alone("first"));
}

TEST_CASE("adapters: adopted memory is used again under the same content only") {
  AdapterScene scene;
  LeaseId lease = scene.rig.grant("t");
  scene.submit("r", "first", lease);
  while (scene.tokens("r").size() < 6) REQUIRE(scene.rig.step());
  const std::vector<TokenId> before = scene.tokens("r");
  scene.rig.clear_outcomes();
  const auto [fresh, adopted] = scene.rig.adopt(lease, "t");
  REQUIRE(adopted.records == 1);
  scene.rig.clear_outcomes();
  const std::string adapter = GENERATE("first", "second", "");
  PromptRequest again = scene.request("again", adapter, fresh);
  again.emitted = before;
  again.rebound_from = lease;
  REQUIRE(scene.rig.submit(again));
  scene.rig.run();
  const bool is_same = adapter == "first";
  CHECK((scene.rig.completion("again").cached_tokens > 0U) == is_same);
  if (!is_same) return;
  std::vector<TokenId> whole = before;
  const std::vector<TokenId>& rest = scene.tokens("again");
  whole.insert(whole.end(), rest.begin(), rest.end());
  CHECK(whole == alone("first"));
}

TEST_CASE(
    "adapters: a revocation at any unit ends the adapter's texts, and the others keep theirs") {
  const auto run = [](std::size_t at) {
    AdapterScene scene;
    for (const std::string& adapter : kAdapters)
      scene.submit("r" + adapter, adapter, scene.rig.grant("t"));
    for (int i = 0; i < 3; ++i) REQUIRE(scene.rig.step());
    const LeaseId revoked = scene.rig.adapters().loaded.at("first")->lease;
    const std::size_t before = scene.tokens("rfirst").size();
    scene.watch.start(at, [&] { scene.rig.revoke(revoked); });
    REQUIRE(scene.rig.step());
    scene.watch.stop();
    REQUIRE(scene.watch.acted());
    const bool is_decided = scene.watch.units()[at].site == LaunchSite::Commit;
    CHECK(scene.tokens("rfirst").size() == before + (is_decided ? 1 : 0));
    CHECK(scene.rig.outcome("rfirst").completions.size() == (is_decided ? 0 : 1));
    scene.rig.run();
    const Completed& end = scene.rig.completion("rfirst");
    CHECK(end.reason == CompletionReason::Revoked);
    REQUIRE(end.revocation);
    CHECK(end.revocation->lease == revoked);
    CHECK(end.revocation->scope == FailureScope::Adapter);
    CHECK(scene.tokens("r") == alone(""));
    CHECK(scene.tokens("rsecond") == alone("second"));
    scene.rig.drop(revoked);
    return scene.watch.units().size();
  };
  const std::size_t units = run(0);
  REQUIRE(units > 20);
  for (std::size_t at = 1; at < units; at += units / 16) {
    CAPTURE(at);
    run(at);
  }
}

TEST_CASE("adapters: a text that its revoked adapter ended goes on with the same content") {
  AdapterScene scene;
  const LeaseId lease = scene.rig.grant("t");
  scene.submit("r", "first", lease);
  while (scene.tokens("r").size() < 5) REQUIRE(scene.rig.step());
  const LeaseId revoked = scene.rig.adapters().loaded.at("first")->lease;
  scene.rig.revoke(revoked);
  scene.rig.run();
  std::vector<TokenId> whole = scene.tokens("r");
  scene.rig.drop(revoked);
  scene.rig.clear_outcomes();
  scene.rig.load_adapter("first", 11, kRank);
  PromptRequest again = scene.request("r", "first", lease);
  again.emitted = whole;
  REQUIRE(scene.rig.submit(again));
  scene.rig.run();
  const std::vector<TokenId>& rest = scene.tokens("r");
  whole.insert(whole.end(), rest.begin(), rest.end());
  CHECK(whole == alone("first"));
}

TEST_CASE("adapters: a text published under an adapter is read under that content alone") {
  AdapterScene scene;
  const LeaseId shared = scene.rig.publish(scene.published(), "first");
  CHECK(scene.rig.adapters().loaded.at("first").use_count() == 1);  // the fill is over
  for (const std::string& adapter : kAdapters) {
    scene.submit("r" + adapter, adapter, scene.rig.grant("t"));
    REQUIRE(scene.rig.step());
    CHECK((scene.rig.sequence("r" + adapter)->shared_lease == shared) == (adapter == "first"));
    scene.rig.run();
    CHECK(scene.tokens("r" + adapter) == alone(adapter));
  }
  const LeaseId of_base = scene.rig.publish(scene.published());
  scene.submit("base", "", scene.rig.grant("t"));
  REQUIRE(scene.rig.step());
  CHECK(scene.rig.sequence("base")->shared_lease == of_base);
  scene.rig.run();
  CHECK(scene.tokens("base") == alone(""));
}

TEST_CASE(
    "adapters: a reader of a published text ends with its adapter, and reads the text again") {
  AdapterScene scene;
  const LeaseId shared = scene.rig.publish(scene.published(), "first");
  const LeaseId lease = scene.rig.grant("t");
  scene.submit("r", "first", lease);
  while (scene.tokens("r").size() < 5) REQUIRE(scene.rig.step());
  const LeaseId revoked = scene.rig.adapters().loaded.at("first")->lease;
  scene.rig.revoke(revoked);
  scene.rig.run();
  CHECK(scene.rig.completion("r").revocation->scope == FailureScope::Adapter);
  std::vector<TokenId> whole = scene.tokens("r");
  scene.rig.drop(revoked);
  scene.rig.clear_outcomes();
  scene.rig.load_adapter("first", 11, kRank);
  PromptRequest again = scene.request("again", "first", scene.rig.grant("t"));
  again.emitted = whole;
  REQUIRE(scene.rig.submit(again));
  REQUIRE(scene.rig.step());
  CHECK(scene.rig.sequence("again")->shared_lease == shared);
  scene.rig.run();
  const std::vector<TokenId>& rest = scene.tokens("again");
  whole.insert(whole.end(), rest.begin(), rest.end());
  CHECK(whole == alone("first"));
}

TEST_CASE("adapters: a fill waits for its adapter, and ends without it or with its lease") {
  AdapterScene scene;
  const LeaseId shared = scene.rig.grant_shared();
  const auto fill = [&](RequestAdapter adapter) {
    REQUIRE(scene.rig.engine().fill(shared, scene.published(), std::move(adapter)));
  };
  const auto refusal = [&] {
    const std::vector<PrefixFilled> filled = scene.rig.engine().take_filled();
    REQUIRE(filled.size() == 1);
    CHECK(filled[0].lease == shared);
    REQUIRE_FALSE(filled[0].blocks);
    return filled[0].blocks.error();
  };
  SECTION("its load fails") {
    fill({.name = "third"});
    CHECK(scene.rig.engine().take_filled().empty());
    scene.rig.adapters().answer(fail(Errc::MissingWeight, "no file"));
    CHECK(refusal().code == Errc::MissingWeight);
  }
  SECTION("another version is the newest one") {
    fill({.name = "first", .version = 2});
    CHECK(refusal().code == Errc::UnknownAdapter);
  }
  SECTION("the lease of the text ends while it waits") {
    fill({.name = "third"});
    scene.rig.revoke(shared);
    scene.rig.drop(shared);
    REQUIRE(scene.rig.step());
    CHECK(refusal().code == Errc::LeaseFenced);
    scene.rig.adapters().answer(scene.rig.adapters().loaded.at("first"));
  }
  SECTION("the adapter is revoked while the text is computed") {
    fill({.name = "first"});
    const AdapterUse& adapter = scene.rig.adapters().loaded.at("first");
    CHECK(adapter.use_count() > 1);  // the fill holds it
    const LeaseId revoked = adapter->lease;
    scene.rig.revoke(revoked);
    REQUIRE(scene.rig.step());
    const Error why = refusal();
    CHECK(adapter.use_count() == 1);
    CHECK(why.code == Errc::LeaseRevoked);
    CHECK(why.scope == FailureScope::Adapter);
    scene.rig.drop(revoked);
  }
  CHECK_FALSE(scene.rig.engine().has_work());
}

TEST_CASE("adapters: proposals change no text") {
  RigOptions options = BackendUnderTest{.speculate = 4}.options();
  AdapterScene scene(options);
  for (const std::string& adapter : kAdapters)
    scene.submit("r" + adapter, adapter, scene.rig.grant("t"));
  scene.rig.run();
  for (const std::string& adapter : kAdapters) CHECK(scene.tokens("r" + adapter) == alone(adapter));
}

}  // namespace leasehold::testing

#include "worker/engine/adapter_waits.hpp"

#include <catch2/catch.hpp>

#include "tests/support/adapter_double.hpp"
#include "tests/support/engine_rig.hpp"
#include "worker/model/adapter_matrices.hpp"

namespace leasehold::testing {
namespace {

struct Waits {
  PromptRequest request(const std::string& id, const std::string& adapter = "tuned") {
    PromptRequest made = rig.request("t", lease, id, rig.encode("Once upon a time"), 3);
    made.adapter.name = adapter;
    return made;
  }
  void submit(PromptRequest request) {
    rig.engine().submissions().submit(
        std::move(request), [this](Result<AdapterUse> queued) { answers.push_back(queued); });
  }
  AdapterUse adapter() {
    return std::make_shared<const LoadedAdapter>(
        LoadedAdapter{.name = "tuned",
                      .version = 1,
                      .digest = {{1}},
                      .lease = rig.grant("t"),
                      .matrices = std::make_shared<const AdapterMatrices>(rig.config().n_layers)});
  }
  Errc refusal() const {
    REQUIRE(answers.size() == 1);
    REQUIRE_FALSE(answers.front());
    return answers.front().error().code;
  }

  EngineRig rig{{.reference = true, .limits = {.max_adapter_rank = 4}}};
  LeaseId lease = rig.grant("t");
  AdapterDouble& adapters = rig.adapters();
  std::vector<Result<AdapterUse>> answers;
};

}  // namespace

TEST_CASE(
    "adapter waits: a request is queued once its adapter is loaded, and holds it to its end") {
  Waits waits;
  waits.submit(waits.request("first"));
  waits.submit(waits.request("second"));
  CHECK(waits.answers.empty());
  CHECK(waits.rig.engine().has_work());
  CHECK_FALSE(waits.rig.engine().scheduler().has_work());
  const AdapterUse use = waits.adapter();
  const long held_before = use.use_count();
  waits.adapters.answer(use);
  REQUIRE(waits.answers.size() == 2);
  CHECK(waits.answers[0].value() == use);
  waits.answers.clear();
  CHECK(use.use_count() > held_before);
  waits.rig.run();
  CHECK(waits.rig.completion("first").reason == CompletionReason::MaxTokensReached);
  CHECK(waits.rig.completion("second").reason == CompletionReason::MaxTokensReached);
  CHECK(use.use_count() == held_before);
}

TEST_CASE("adapter waits: a request for the base model does not ask for an adapter, or wait") {
  Waits waits;
  waits.submit(waits.request("adapted"));
  waits.submit(waits.request("base", ""));
  REQUIRE(waits.answers.size() == 1);
  CHECK(waits.answers[0].value() == nullptr);
  CHECK(waits.adapters.asked == 1);
  for (int i = 0; i < 10; ++i) REQUIRE(waits.rig.step());
  CHECK(waits.rig.completion("base").reason == CompletionReason::MaxTokensReached);
}

TEST_CASE("adapter waits: a request whose adapter is not loaded is refused, never run without it") {
  Waits waits;
  waits.submit(waits.request("r"));
  waits.adapters.answer(fail(Errc::FileCorrupt, "a matrix has values that are not finite"));
  CHECK(waits.refusal() == Errc::FileCorrupt);
  CHECK_FALSE(waits.rig.engine().has_work());
}

TEST_CASE("adapter waits: a text goes on under the version that began it, and under no other one") {
  const bool is_same = GENERATE(true, false);
  Waits waits;
  PromptRequest request = waits.request("r");
  const AdapterUse use = waits.adapter();
  request.adapter.continued = is_same ? use->digest.hex() : ContentDigest{{2}}.hex();
  waits.submit(std::move(request));
  waits.adapters.answer(use);
  if (is_same) {
    REQUIRE(waits.answers.size() == 1);
    CHECK(waits.answers.front().has_value());
  } else {
    CHECK(waits.refusal() == Errc::UnknownAdapter);
    CHECK_FALSE(waits.rig.engine().has_work());
  }
}

TEST_CASE("adapter waits: a request for one version does not run under another") {
  const bool is_same = GENERATE(true, false);
  Waits waits;
  PromptRequest request = waits.request("r");
  request.adapter.version = is_same ? 1 : 2;
  waits.submit(std::move(request));
  waits.adapters.answer(waits.adapter());  // version 1
  if (is_same) {
    REQUIRE(waits.answers.size() == 1);
    CHECK(waits.answers.front().has_value());
  } else {
    CHECK(waits.refusal() == Errc::UnknownAdapter);
  }
}

TEST_CASE("adapter waits: a request that can never run is refused before its adapter is loaded") {
  Waits waits;
  PromptRequest request = waits.request("r");
  request.prompt.clear();
  waits.submit(std::move(request));
  CHECK(waits.refusal() == Errc::BadRequest);
  CHECK(waits.adapters.asked == 0);
}

TEST_CASE("adapter waits: requests that wait for adapters are bounded by the limits of the queue") {
  Waits waits;
  Errc expected{};
  SECTION("of the lease") {
    waits.rig.engine().submissions().set_queue_limits(100, 2);
    expected = Errc::QuotaConcurrent;
  }
  SECTION("of the tenant") {
    waits.rig.engine().submissions().set_queue_limits(4, 100);  // one owner alone gets half
    expected = Errc::QueueFull;
  }
  for (const char* id : {"a", "b"}) waits.submit(waits.request(id));
  CHECK(waits.answers.empty());
  waits.submit(waits.request("c"));
  CHECK(waits.refusal() == expected);
  CHECK(waits.adapters.asked == 2);
}

TEST_CASE("adapter waits: a full queue refuses to fill a published text, and names the broker") {
  Waits waits;
  Engine& engine = waits.rig.engine();
  engine.submissions().set_queue_limits(4, 100);
  const std::vector<TokenId> text(40, TokenId{30});
  for (int i = 0; i < 3; ++i)
    REQUIRE(engine.fill(waits.rig.grant_shared(), text, {.name = "tuned"}));
  const std::vector<PrefixFilled> filled = engine.take_filled();
  REQUIRE(filled.size() == 1);
  REQUIRE_FALSE(filled[0].blocks);
  const Error& refusal = filled[0].blocks.error();
  CHECK(refusal.code == Errc::QueueFull);
  CHECK(refusal.detail.starts_with("the broker, which publishes texts, has 2 requests waiting"));
}

TEST_CASE("adapter waits: a waiting request ends when it is cancelled, late or without its lease") {
  Waits waits;
  PromptRequest request = waits.request("r");
  Errc expected{};
  SECTION("cancelled") {
    waits.submit(std::move(request));
    REQUIRE(waits.rig.engine().cancel({"r"}));
    expected = Errc::RequestCancelled;
  }
  SECTION("late") {
    request.deadline = waits.rig.clock().now() + std::chrono::seconds(1);
    waits.submit(std::move(request));
    waits.rig.engine().end_stopped();
    CHECK(waits.answers.empty());
    waits.rig.clock().advance(std::chrono::seconds(1));
    waits.rig.engine().end_stopped();
    expected = Errc::TimedOut;
  }
  SECTION("without its lease") {
    waits.submit(std::move(request));
    waits.rig.revoke(waits.lease);
    waits.rig.engine().end_stopped();
    expected = Errc::LeaseRevoked;
  }
  SECTION("stopped with the worker") {
    waits.submit(std::move(request));
    waits.rig.engine().end_all({Errc::Draining, "the worker stops"});
    expected = Errc::Draining;
  }
  CHECK(waits.refusal() == expected);
  CHECK_FALSE(waits.rig.engine().has_work());
  waits.adapters.answer(waits.adapter());  // comes too late, and is given back
  CHECK(waits.answers.size() == 1);
  CHECK_FALSE(waits.rig.engine().has_work());
}

TEST_CASE("adapter waits: a revoked adapter ends its requests with its scope, and no others") {
  Waits waits;
  const LeaseId adapter = waits.rig.load_adapter("tuned", 1)->lease;
  waits.submit(waits.request("adapted"));
  waits.submit(waits.request("base", ""));
  REQUIRE(waits.rig.step());
  waits.rig.revoke(adapter);
  waits.rig.run();
  const Completed& end = waits.rig.completion("adapted");
  CHECK(end.reason == CompletionReason::Revoked);
  REQUIRE(end.revocation);
  CHECK(end.revocation->lease == adapter);
  CHECK(end.revocation->scope == FailureScope::Adapter);
  CHECK(waits.rig.completion("base").reason == CompletionReason::MaxTokensReached);
}

}  // namespace leasehold::testing

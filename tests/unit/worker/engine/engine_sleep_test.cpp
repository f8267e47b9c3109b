/// The engine loop of a worker that sleeps: what is running waits, and an arrival wakes it.
#include <catch2/catch.hpp>

#include "tests/support/engine_rig.hpp"
#include "worker/engine/engine_loop.hpp"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration kIdleLimit = 10s;

/// A loop on the test's thread. `broker_wakes` answers weights.wake, and `restore` the loss of a
/// part; the loop stops once `wanted_ends` requests have ended.
struct SleepyLoop {
  explicit SleepyLoop(Duration idle_limit = Duration::zero())
      : loop(rig.engine(),
             {.on_report = [this](const StepReport& report) { note(report); },
              .on_growth = [](const std::vector<GrowthRequest>&) {},
              .on_drained = [](const std::vector<LeaseId>&) {},
              .on_observed =
                  [this](const Engine&) {
                    if (on_observed) on_observed();
                  },
              .on_weights_lost =
                  [this](Engine&) {
                    ++restores;
                    return restore();
                  },
              .on_service_changed = [](const std::optional<Error>&) {},
              .on_sleep_changed =
                  [this](SleepPhase phase) {
                    phases.push_back(phase);
                    if (on_phase) on_phase(phase);
                  },
              .ask_to_sleep =
                  [this](const std::optional<Error>& why) {
                    asked_to_sleep.push_back(why ? why->code : std::optional<Errc>{});
                    if (on_asked_to_sleep) on_asked_to_sleep();
                  },
              .ask_to_wake =
                  [this] {
                    ++asked_to_wake;
                    broker_wakes();
                  }},
             1ms, idle_limit) {}

  void note(const StepReport& report) {
    for (const SchedulerEvent& event : report.events) {
      if (const auto* token = std::get_if<Token>(&event))
        texts[token->engine_request_id.value].push_back(token->token);
      if (std::holds_alternative<Completed>(event)) ++ended;
    }
    if (on_note) on_note();
    if (ended >= wanted_ends) loop.stop();
  }

  PromptRequest request(const std::string& id) {
    return rig.request("t", lease, id, rig.encode("Once upon a time"), 5);
  }
  void post_request(const std::string& id) {
    loop.post([request = request(id)](Engine& engine) { REQUIRE(engine.submit(request)); });
  }
  void revoke_for_sleep() { rig.revoke(rig.engine_lease(), RevokeReason::WorkerAsleep); }
  /// Calls `then` once request "r" has two tokens.
  void after_two_tokens(std::function<void()> then) {
    on_note = [this, then = std::move(then), done = false]() mutable {
      if (texts["r"].size() == 2 && !std::exchange(done, true)) then();
    };
  }

  EngineRig rig;
  LeaseId lease = rig.grant("t", 2);
  EngineLoop loop;
  std::map<std::string, std::vector<TokenId>> texts;
  int ended = 0, wanted_ends = 1;
  int restores = 0, asked_to_wake = 0;
  std::vector<SleepPhase> phases;
  std::vector<std::optional<Errc>> asked_to_sleep;
  std::function<void()> on_note, on_asked_to_sleep, on_observed;
  std::function<void(SleepPhase)> on_phase;
  std::function<void()> broker_wakes = [this] { loop.set_asleep(false); };
  std::function<Result<void>()> restore = [this]() -> Result<void> {
    rig.restore_weights();
    return {};
  };
};

}  // namespace

TEST_CASE("engine sleep: texts wait for the next request, and then continue as if undisturbed") {
  SleepyLoop undisturbed;
  undisturbed.post_request("r");
  undisturbed.loop.run();
  const std::vector<TokenId> alone = undisturbed.texts.at("r");

  SleepyLoop sleepy;
  sleepy.wanted_ends = 2;
  const bool order_comes_first = GENERATE(false, true);
  sleepy.after_two_tokens([&] {
    if (order_comes_first) sleepy.loop.set_asleep(true);
    sleepy.revoke_for_sleep();
    if (!order_comes_first) sleepy.loop.set_asleep(true);
  });
  sleepy.on_phase = [&](SleepPhase phase) {
    if (phase != SleepPhase::Asleep) return;
    CHECK(sleepy.restores == 0);
    CHECK(sleepy.texts["r"].size() == 2);
    sleepy.loop.set_asleep(true);  // changes nothing
    sleepy.post_request("second");
  };
  sleepy.post_request("r");
  sleepy.loop.run();

  CHECK(sleepy.asked_to_wake == 1);
  CHECK(sleepy.restores == 1);
  CHECK(sleepy.texts["r"] == alone);
  CHECK(sleepy.texts["second"] == alone);
  CHECK(sleepy.phases == std::vector{SleepPhase::Asleep, SleepPhase::Waking, SleepPhase::Awake});
}

TEST_CASE("engine sleep: an operator or a drain wakes a worker whose texts wait") {
  const bool drains = GENERATE(false, true);
  SleepyLoop sleepy;
  sleepy.after_two_tokens([&] { sleepy.revoke_for_sleep(); });
  sleepy.on_phase = [&](SleepPhase phase) {
    if (phase != SleepPhase::Asleep) return;
    drains ? sleepy.loop.wake_for_requests() : sleepy.loop.set_asleep(false);
  };
  sleepy.post_request("r");
  sleepy.loop.run();
  CHECK(sleepy.asked_to_wake == (drains ? 1 : 0));
  CHECK(sleepy.texts["r"].size() == 5);
}

TEST_CASE("engine sleep: a drain without requests does not wake the worker") {
  SleepyLoop sleepy;
  sleepy.revoke_for_sleep();
  sleepy.loop.wake_for_requests();
  sleepy.loop.post([&](Engine&) { sleepy.loop.post([&](Engine&) { sleepy.loop.stop(); }); });
  sleepy.loop.run();
  CHECK(sleepy.asked_to_wake == 0);
  CHECK(sleepy.restores == 0);
}

TEST_CASE("engine sleep: a refused wake is repeated until it is permitted") {
  SleepyLoop sleepy;
  sleepy.broker_wakes = [&] {
    if (sleepy.asked_to_wake < 3) return sleepy.loop.wake_refused({Errc::PoolExhausted, "not yet"});
    sleepy.loop.set_asleep(false);
  };
  sleepy.revoke_for_sleep();
  sleepy.loop.set_asleep(true);
  sleepy.post_request("r");
  sleepy.loop.run();
  CHECK(sleepy.asked_to_wake == 3);
  CHECK(sleepy.texts["r"].size() == 5);
}

TEST_CASE("engine sleep: without room for the weights the worker sleeps again, and says why") {
  SleepyLoop sleepy;
  sleepy.restore = [] { return fail(Errc::PoolExhausted, "another model has the memory"); };
  sleepy.revoke_for_sleep();
  sleepy.loop.set_asleep(true);
  SECTION("at once for an operator") {
    sleepy.loop.set_asleep(false);
  }
  SECTION("after a minute for a request, which gets WeightsLoading") {
    sleepy.wanted_ends = 2;  // of one request: the loop goes on
    sleepy.restore = [&]() -> Result<void> {
      sleepy.rig.clock().advance(kRestoreTimeout);
      return fail(Errc::PoolExhausted, "another model has the memory");
    };
    sleepy.post_request("r");
  }
  sleepy.on_asked_to_sleep = [&] {
    sleepy.loop.set_asleep(true);
    sleepy.loop.post([&](Engine&) { sleepy.loop.stop(); });
  };
  sleepy.loop.run();
  CHECK(sleepy.asked_to_sleep == std::vector<std::optional<Errc>>{Errc::PoolExhausted});
  CHECK(sleepy.phases.back() == SleepPhase::Asleep);
}

TEST_CASE("engine sleep: a worker that never gets a request sleeps, too") {
  SleepyLoop sleepy(1ms);
  sleepy.on_asked_to_sleep = [&] { sleepy.loop.stop(); };
  sleepy.on_observed = [&] { sleepy.rig.clock().advance(1ms); };
  sleepy.loop.run();
  CHECK(sleepy.asked_to_sleep.size() == 1);
}

TEST_CASE("engine sleep: an idle worker asks to sleep, and a request that crosses wakes it") {
  SleepyLoop sleepy(kIdleLimit);
  sleepy.loop.post([&](Engine&) { sleepy.rig.clock().advance(kIdleLimit / 2); });
  sleepy.loop.post(
      [&](Engine&) { sleepy.loop.post([&](Engine&) { sleepy.rig.clock().advance(kIdleLimit); }); });
  sleepy.on_asked_to_sleep = [&] {
    sleepy.post_request("r");
    sleepy.revoke_for_sleep();
    sleepy.loop.set_asleep(true);
  };
  sleepy.loop.run();
  CHECK(sleepy.asked_to_sleep == std::vector<std::optional<Errc>>{std::nullopt});
  CHECK(sleepy.asked_to_wake == 1);
  CHECK(sleepy.texts["r"].size() == 5);
}

}  // namespace leasehold::testing

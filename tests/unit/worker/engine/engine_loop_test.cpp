#include "worker/engine/engine_loop.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/engine_rig.hpp"
#include "tests/support/unit_watch.hpp"

namespace leasehold::testing {
namespace {

/// A loop on the test's thread that stops once a request has ended.
struct LoopFixture {
  explicit LoopFixture(std::function<Result<void>(LoopFixture&)> on_weights_lost)
      : loop(rig.engine(),
             {.on_report = [this](const StepReport& report) { note(report); },
              .on_growth = [](const std::vector<GrowthRequest>&) {},
              .on_drained =
                  [this](std::vector<LeaseId> leases) {
                    tokens_before_drained = tokens;
                    drained = std::move(leases);
                    loop.stop();
                  },
              .on_served =
                  [this](std::vector<wire::TenantServed> served) {
                    for (const auto& each : served) served_reports.push_back(each);
                    if (!ends.empty() && !stops_in_service) loop.stop();
                  },
              .on_weights_lost =
                  [this, restore = std::move(on_weights_lost)](Engine&) { return restore(*this); },
              .on_service_changed =
                  [this](const std::optional<Error>& missing) {
                    service.push_back(missing ? missing->code : std::optional<Errc>{});
                    if (!missing && stops_in_service) loop.stop();
                  }},
             std::chrono::milliseconds(1)) {}

  void note(const StepReport& report) {
    for (const SchedulerEvent& event : report.events) {
      if (std::holds_alternative<Token>(event)) ++tokens;
      if (const auto* end = std::get_if<Completed>(&event)) ends.push_back(*end);
    }
    if (on_note) on_note();
    const bool waits = waits_for_drain || waits_for_served || stops_in_service;
    if (!ends.empty() && !waits) loop.stop();
  }

  PromptRequest request() {
    return rig.request("t", rig.grant("t"), "r", rig.encode("Once upon a time"), 5);
  }

  /// Runs a request of five tokens, and revokes the weights after its second token.
  void lose_weights_and_run() {
    REQUIRE(rig.submit(request()));
    on_note = [this, lost = false]() mutable {
      if (tokens == 2 && !std::exchange(lost, true)) rig.revoke(rig.engine_lease());
    };
    run();
  }
  /// Wakes the loop and runs it until it stops.
  void run() {
    loop.post([](Engine&) {});
    loop.run();
  }

  AtUnits units;
  EngineRig rig{{.probe = &units}};
  EngineLoop loop;
  int tokens = 0;
  std::vector<Completed> ends;
  bool waits_for_drain = false;
  bool waits_for_served = false;
  std::vector<std::optional<Errc>> service;  // as `on_service_changed` was called
  bool stops_in_service = false;
  std::vector<wire::TenantServed> served_reports;
  std::vector<LeaseId> drained;
  int tokens_before_drained = -1;
  std::function<void()> on_note;
};

Result<void> never(LoopFixture&) {
  return fail(Errc::BrokerLost, "no weights source");
}

}  // namespace

TEST_CASE("engine loop: commands run between steps, in order") {
  LoopFixture fixture(never);
  std::vector<int> order;
  fixture.loop.post([&, request = fixture.request()](Engine& engine) {
    order.push_back(1);
    REQUIRE(engine.submit(request));
  });
  fixture.loop.post([&](Engine&) { order.push_back(2); });
  fixture.on_note = [&] {
    if (fixture.tokens != 2) return;
    fixture.loop.post([&](Engine& engine) {
      order.push_back(3);
      REQUIRE(engine.scheduler().running().all().front()->emitted() == 2);
    });
  };
  fixture.loop.run();
  REQUIRE(order == std::vector{1, 2, 3});
  REQUIRE(fixture.tokens == 5);
}

TEST_CASE("engine loop: what a tenant was served is reported before a wait, and once a second") {
  LoopFixture fixture(never);
  fixture.waits_for_served = true;
  const PromptRequest request = fixture.request();
  const std::size_t prompt = request.prompt.size();
  REQUIRE(fixture.rig.submit(request));
  SECTION("while less than a second passes") {
    fixture.run();
    REQUIRE(fixture.served_reports.size() == 2);  // of the first step, and of the others
    CHECK(fixture.served_reports[1].tokens == 4);
  }
  SECTION("while each step takes a second") {
    fixture.on_note = [&] { fixture.rig.clock().advance(std::chrono::seconds(1)); };
    fixture.run();
    REQUIRE(fixture.served_reports.size() >= 5);
    CHECK(fixture.served_reports[1].tokens == 1);
  }
  CHECK(fixture.served_reports[0].tokens == prompt);
}

TEST_CASE("engine loop: an end found between two steps is reported before the next step") {
  LoopFixture fixture(never);
  const PromptRequest other = fixture.request();
  const LeaseId revoked = fixture.rig.grant("u");
  REQUIRE(fixture.rig.submit(other));
  REQUIRE(fixture.rig.submit(fixture.rig.request("u", revoked, "s", other.prompt, 5)));
  std::optional<int> tokens_before_end;
  fixture.on_note = [&, done = false]() mutable {
    if (fixture.tokens == 4 && !std::exchange(done, true)) fixture.rig.revoke(revoked);
    if (!fixture.ends.empty() && !tokens_before_end) tokens_before_end = fixture.tokens;
  };
  fixture.run();
  REQUIRE(fixture.ends.size() == 1);
  CHECK(fixture.ends[0].reason == CompletionReason::Revoked);
  CHECK(tokens_before_end == 4);
}

TEST_CASE("engine loop: a draining lease is reported after the end of its last request") {
  LoopFixture fixture(never);
  fixture.waits_for_drain = true;
  const PromptRequest request = fixture.request();
  REQUIRE(fixture.rig.submit(request));
  fixture.on_note = [&] {
    const auto later = fixture.rig.clock().now() + std::chrono::hours(1);
    if (fixture.tokens == 2) fixture.rig.set_drain_deadline(request.lease, later);
  };
  fixture.run();
  REQUIRE(fixture.drained == std::vector{request.lease});
  REQUIRE(fixture.tokens_before_drained == 5);
  REQUIRE(fixture.ends.size() == 1);
}

TEST_CASE("engine loop: a drained lease is reported while another text goes on") {
  LoopFixture fixture(never);
  fixture.waits_for_drain = true;
  const PromptRequest other = fixture.request();
  const LeaseId draining = fixture.rig.grant("u");
  REQUIRE(fixture.rig.submit(other));
  REQUIRE(fixture.rig.submit(fixture.rig.request("u", draining, "s", other.prompt, 1)));
  fixture.rig.set_drain_deadline(draining, fixture.rig.clock().now() + std::chrono::hours(1));
  fixture.on_note = [&] { fixture.rig.clock().advance(std::chrono::milliseconds(20)); };
  fixture.run();
  CHECK(fixture.drained == std::vector{draining});
  CHECK(fixture.ends.size() == 1);
}

TEST_CASE("engine loop: a request continues after its lost weights are restored") {
  int asked = 0;
  LoopFixture fixture([&](LoopFixture& self) -> Result<void> {
    ++asked;
    self.rig.restore_weights();
    return {};
  });
  fixture.lose_weights_and_run();
  REQUIRE(asked == 1);
  REQUIRE(fixture.tokens == 5);
  REQUIRE(fixture.ends[0].reason == CompletionReason::MaxTokensReached);
}

TEST_CASE("engine loop: transient errors are retried, and commands run in between") {
  const Errc passing = GENERATE(Errc::WeightsLoading, Errc::EngineLeaseFenced, Errc::LeaseRevoked);
  int asked = 0;
  int heard = 0;
  LoopFixture fixture([&](LoopFixture& self) -> Result<void> {
    // The restore succeeds only after a command ran between two attempts.
    if (++asked == 1) self.loop.post([&](Engine&) { ++heard; });
    if (heard == 0) return fail(passing, "not yet");
    self.rig.restore_weights();
    return {};
  });
  fixture.lose_weights_and_run();
  REQUIRE(asked == 2);
  REQUIRE(heard == 1);
  REQUIRE(fixture.tokens == 5);
  REQUIRE(fixture.ends[0].reason == CompletionReason::MaxTokensReached);
}

TEST_CASE("engine loop: when a restore fails for good, every request ends with a typed error") {
  const auto [cause, code] = GENERATE(table<Errc, Errc>({{Errc::BrokerLost, Errc::BrokerLost},
                                                         {Errc::FileCorrupt, Errc::MissingWeight},
                                                         {Errc::BadRequest, Errc::MissingWeight}}));
  LoopFixture fixture([cause = cause](LoopFixture&) { return fail(cause, "why"); });
  fixture.lose_weights_and_run();
  REQUIRE(fixture.ends.size() == 1);
  REQUIRE(fixture.ends[0].reason == CompletionReason::EngineError);
  REQUIRE(fixture.ends[0].error->code == code);
  REQUIRE(fixture.ends[0].error->scope == FailureScope::Engine);
  REQUIRE(fixture.ends[0].emitted_tokens == 2);
}

TEST_CASE("engine loop: a part that is gone is tried again without a request until it is back") {
  int asked = 0;
  LoopFixture fixture([&](LoopFixture& self) -> Result<void> {
    if (++asked < 4) return fail(Errc::FileCorrupt, "truncated");
    self.rig.restore_weights();
    return {};
  });
  fixture.stops_in_service = true;
  fixture.lose_weights_and_run();
  CHECK(asked == 4);
  REQUIRE(fixture.ends.size() == 1);
  CHECK(fixture.ends[0].error->code == Errc::MissingWeight);
  CHECK(fixture.service == std::vector<std::optional<Errc>>{Errc::MissingWeight, std::nullopt});
}

TEST_CASE("engine loop: weights that come back at once, or later, do not end the service") {
  int asked = 0;
  LoopFixture fixture([&](LoopFixture& self) -> Result<void> {
    if (++asked == 1) return fail(Errc::WeightsLoading, "another worker fills it");
    self.rig.restore_weights();
    return {};
  });
  fixture.lose_weights_and_run();
  CHECK(fixture.tokens == 5);
  CHECK(fixture.service.empty());
}

TEST_CASE("engine loop: when a restore takes too long, every request ends with WeightsLoading") {
  int asked = 0;
  LoopFixture fixture([&](LoopFixture& self) -> Result<void> {
    if (++asked > 1) self.rig.clock().advance(kRestoreTimeout / 2);
    return fail(Errc::WeightsLoading, "another worker fills it");
  });
  fixture.lose_weights_and_run();
  REQUIRE(asked == 3);
  REQUIRE(fixture.ends.size() == 1);
  REQUIRE(fixture.ends[0].error->code == Errc::WeightsLoading);
}

TEST_CASE("engine loop: when weights are revoked faster than a step runs, every request ends") {
  const bool within_step = GENERATE(false, true);
  CAPTURE(within_step);
  int restores = 0;
  LoopFixture fixture([&](LoopFixture& self) -> Result<void> {
    const auto revoke = [&self] { self.rig.revoke(self.rig.engine_lease()); };
    self.rig.restore_weights();
    self.rig.clock().advance(kRestoreTimeout / 4);
    if (++restores == 20) {
      self.loop.stop();
    } else if (!within_step) {
      revoke();
    } else {
      self.units.start([revoke](int unit) {
        if (unit == 0) revoke();
      });
    }
    return {};
  });
  fixture.lose_weights_and_run();
  CHECK(restores == 6);  // the second loss begins the wait, and the sixth ends it
  REQUIRE(fixture.ends.size() == 1);
  REQUIRE(fixture.ends[0].error);
  CHECK(fixture.ends[0].error->code == Errc::WeightsLoading);
  CHECK(fixture.ends[0].error->scope == FailureScope::Engine);
  CHECK(fixture.ends[0].emitted_tokens == 2);
}

TEST_CASE("engine loop: weights revoked after every step end no request") {
  LoopFixture fixture([](LoopFixture& self) -> Result<void> {
    self.rig.restore_weights();
    self.rig.clock().advance(kRestoreTimeout);
    return {};
  });
  REQUIRE(fixture.rig.submit(fixture.request()));
  fixture.on_note = [&, seen = 0]() mutable {
    if (std::exchange(seen, fixture.tokens) < fixture.tokens)
      fixture.rig.revoke(fixture.rig.engine_lease());
  };
  fixture.run();
  REQUIRE(fixture.ends.size() == 1);
  CHECK(fixture.ends[0].reason == CompletionReason::MaxTokensReached);
  CHECK(fixture.tokens == 5);
}

TEST_CASE("engine loop: the time before a request arrives does not count as its wait") {
  int asked = 0;
  LoopFixture fixture([&](LoopFixture& self) -> Result<void> {
    if (++asked == 1) {
      self.rig.clock().advance(2 * kRestoreTimeout);
      self.loop.post(
          [&self, request = self.request()](Engine& engine) { REQUIRE(engine.submit(request)); });
    }
    if (asked < 3) return fail(Errc::WeightsLoading, "not yet");
    self.rig.restore_weights();
    return {};
  });
  fixture.rig.revoke(fixture.rig.engine_lease());
  fixture.run();  // the loop finds the weights revoked while it is idle
  REQUIRE(asked == 3);
  REQUIRE(fixture.tokens == 5);
}

TEST_CASE("loop: work between steps follows each step, and goes on without one as it asks to") {
  EngineRig rig;
  std::vector<bool> calls;
  EngineLoop* running = nullptr;
  EngineLoop loop(rig.engine(), {.on_report = [](auto) {},
                                 .on_growth = [](auto) {},
                                 .on_drained = [](auto) {},
                                 .on_weights_lost = [](Engine&) { return Result<void>{}; },
                                 .between_steps =
                                     [&](std::optional<Duration> step) {
                                       const bool is_busy = step.has_value();
                                       calls.push_back(is_busy);
                                       const bool is_idle =
                                           calls.size() >= 2 && !calls[calls.size() - 2];
                                       if (is_idle && !is_busy) running->stop();
                                       return rig.clock().now();  // at once, without a command
                                     }});
  running = &loop;
  REQUIRE(rig.submit(rig.request("t", rig.grant("t"), "r", rig.encode("Once upon a time"), 3)));

  loop.post([](Engine&) {});
  REQUIRE(loop.run());

  CHECK(std::ranges::count(calls, true) >= 3);  // the prompt, and the tokens after its first one
  CHECK(std::ranges::count(calls, false) == 2);
}

}  // namespace leasehold::testing

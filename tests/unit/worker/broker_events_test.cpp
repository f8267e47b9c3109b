#include "worker/program/broker_events.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

namespace {

/// A worker that loads, and serves after `serve`.
struct Fixture {
  boost::asio::io_context io;
  LeaseService leases{{.io = &io}};
  BrokerEvents events{io};
  BrokerSession::Handlers handlers = events.handlers();
  // what the serving stage gets
  std::vector<std::string> calls;
  std::vector<bool> connection_changes;
  int losses = 0;

  void serve() {
    events.serve({.on_call = [this](const std::string& method, const control::Payload&,
                                    const control::Responder&) { calls.push_back(method); },
                  .on_connection_changed =
                      [this](bool disconnected) { connection_changes.push_back(disconnected); },
                  .on_broker_lost = [this](const Error&) { ++losses; }},
                 leases);
  }
  /// The error of the reply; nothing for a success, or without a reply.
  std::optional<Errc> call(const auto& message) {
    std::optional<Errc> error;
    handlers.on_call(std::string(message.kMethod), {message.to_json(), {}},
                     [&error](const Result<control::Payload>& reply) {
                       if (!reply) error = reply.error().code;
                     });
    return error;
  }
  bool is_sampling() { return events.step_sampler().is_due(SystemClock().now()); }
  std::optional<Errc> unhealthy() {
    const auto why = events.health().why_not();
    return why ? std::optional(why->code) : std::nullopt;
  }
};

}  // namespace

TEST_CASE("broker events: a grant is refused while the worker loads, and then reaches its stage") {
  Fixture fixture;
  CHECK(fixture.call(wire::LeaseGrant{}) == Errc::NoModelLoaded);
  fixture.serve();
  CHECK(fixture.call(wire::LeaseGrant{}) == std::nullopt);
  CHECK(fixture.calls == std::vector<std::string>{"lease.grant"});
}

TEST_CASE("broker events: sampling and admission are answered in every stage") {
  Fixture fixture;
  fixture.events.health().set_loading(false);
  if (GENERATE(false, true)) fixture.serve();
  CHECK(fixture.call(wire::StepSampling{.interval_ms = 100}) == std::nullopt);
  CHECK(fixture.is_sampling());
  CHECK(fixture.call(wire::WorkerAdmission{.admits = false, .incarnation = 7}) == std::nullopt);
  CHECK(fixture.events.health().incarnation() == 7);
  CHECK(fixture.unhealthy() == Errc::Draining);
  CHECK(fixture.call(wire::StepSampling{.interval_ms = -1}) == Errc::BadRequest);
  CHECK(fixture.calls.empty());
}

TEST_CASE("broker events: a lost connection ends the sampling, and makes the worker unhealthy") {
  Fixture fixture;
  fixture.events.health().set_loading(false);
  REQUIRE(fixture.call(wire::StepSampling{.interval_ms = 100}) == std::nullopt);
  fixture.handlers.on_connection_changed(true);
  CHECK_FALSE(fixture.is_sampling());
  CHECK(fixture.unhealthy() == Errc::BrokerLost);
  fixture.handlers.on_connection_changed(false);
  CHECK(fixture.unhealthy() == std::nullopt);
}

TEST_CASE("broker events: only the serving stage gets the state of the connection") {
  Fixture fixture;
  fixture.handlers.on_connection_changed(true);
  fixture.handlers.on_broker_lost({Errc::BrokerLost, "gone"});
  fixture.serve();
  CHECK(fixture.connection_changes.empty());
  CHECK(fixture.losses == 0);
  fixture.handlers.on_connection_changed(false);
  fixture.handlers.on_broker_lost({Errc::BrokerLost, "gone"});
  CHECK(fixture.connection_changes == std::vector{false});
  CHECK(fixture.losses == 1);
}

TEST_CASE("broker events: a worker counts as loading at first") {
  Fixture fixture;
  CHECK(fixture.unhealthy() == Errc::NoModelLoaded);
}

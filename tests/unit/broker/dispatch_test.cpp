// Which users may call which methods.
#include "broker/server/dispatch.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <set>

#include "tests/support/captured_log.hpp"

using namespace leasehold;

namespace {

struct DispatchFixture {
  const uid_t worker = ::geteuid() + 1;
  const uid_t observer = ::geteuid() + 2;
  const uid_t both = ::geteuid() + 3;
  const uid_t stranger = ::geteuid() + 4;
  std::size_t posted = 0;
  std::size_t queried = 0;
  std::vector<std::string> passed;
  Dispatch dispatch{
      {.wait_for_answer = [](control::Responder) { return CallId{1}; },
       .watch_holder = [](ConnectionId) { return Result<void>(); },
       .start_ticks = [](ConnectionId) { return std::uint64_t{1}; },
       .prepare_worker = [](ConnectionId, const wire::WorkerAttach&) { return Result<void>(); },
       .take_memory = [](ConnectionId, const wire::LeaseRedeliver&,
                         std::vector<UniqueFd>) { return Result<void>(); },
       .open_spill = [](ConnectionId, control::Responder) {},
       .query =
           [this](const Query&, const control::Json&, control::Responder respond) {
             ++queried;
             respond(control::Payload{.body = control::Json::object()});
           },
       .count_touched = [](std::move_only_function<void()> then) { then(); },
       .pass_to_worker =
           [this](const std::string&, const std::string& method, const control::Json&,
                  auto on_reply) {
             passed.push_back(method);
             on_reply(fail(Errc::TimedOut, "not yet"));
             on_reply(control::Payload{
                 .body = wire::RequestsStopped{.ids = {"acme/a", "acme/b"}}.to_json()});
           },
       .post = [this](Event) { ++posted; },
       .admit_events = [](ConnectionId, std::size_t count) { return count; }},
      {.workers = {worker, both}, .observers = {observer, both}}};

  /// The error of a call; nothing when it was answered.
  std::optional<Errc> call(const std::string& method, uid_t uid,
                           control::Json params = control::Json::object()) {
    std::optional<Errc> error;
    dispatch.call(method, {.connection = {1},
                           .credentials = {.pid = 1, .uid = uid},
                           .params = {.body = std::move(params)},
                           .respond = [&](Result<control::Payload> reply) {
                             if (!reply) error = reply.error().code;
                           }});
    return error;
  }
};

const std::set<std::string> kForObservers{
    "status",      "tenant.list", "lease.list", "extent.list",  "quarantine.list",
    "worker.list", "event.list",  "step.list",  "metrics.read", "adapter.list",
};

}  // namespace

TEST_CASE("dispatch: an observer may query state, and each other method refuses it") {
  DispatchFixture fixture;
  std::size_t refused = 0;
  for (const std::string& method : Dispatch::methods()) {
    INFO(method);
    const auto error = fixture.call(method, fixture.observer);
    if (method == wire::RequestList::kMethod) {
      CHECK(error == Errc::BadRequest);  // allowed, but no worker is named
      continue;
    }
    CHECK(error.has_value() == !kForObservers.contains(method));
    if (!error) continue;
    CHECK(*error == Errc::PermissionDenied);
    ++refused;
  }
  CHECK(refused == Dispatch::methods().size() - kForObservers.size() - 1);
  CHECK(fixture.queried == kForObservers.size());
  CHECK(fixture.posted == 0);
}

TEST_CASE("dispatch: a user without a role may not query, and an operator may") {
  DispatchFixture fixture;
  for (const std::string& method : kForObservers) {
    INFO(method);
    CHECK(fixture.call(method, fixture.stranger) == Errc::PermissionDenied);
    CHECK_FALSE(fixture.call(method, ::geteuid()).has_value());
  }
}

TEST_CASE("dispatch: a worker's user that also observes keeps the rights of both") {
  DispatchFixture fixture;
  CHECK_FALSE(fixture.call("status", fixture.both).has_value());
  CHECK(fixture.call("status", fixture.worker) == Errc::PermissionDenied);
  CHECK(fixture.call("worker.attach", fixture.both) != Errc::PermissionDenied);
  CHECK(fixture.call("lease.query", fixture.both) != Errc::PermissionDenied);
}

TEST_CASE("dispatch: a late reply of a worker is recorded, and the caller is answered once") {
  DispatchFixture fixture;
  const auto stop = wire::RequestStop{.worker = "w1", .ids = {"acme/a"}}.to_json();
  CHECK(fixture.call("request.stop", fixture.observer, stop) == Errc::PermissionDenied);
  CHECK(fixture.passed.empty());
  CHECK(fixture.call("request.stop", ::geteuid(), stop) == Errc::TimedOut);
  CHECK(fixture.posted == 1);
  const auto list = wire::RequestList{.worker = "w1"}.to_json();
  CHECK(fixture.call("request.list", fixture.observer, list) == Errc::TimedOut);
  CHECK(fixture.posted == 1);
  CHECK(fixture.passed == std::vector<std::string>{"request.stop", "request.list"});
}

TEST_CASE("dispatch: malformed events of one report are one warning with their number") {
  DispatchFixture fixture;
  const events::Event drained = events::LeaseDraining{.lease = {1, 1}, .tenant = "acme"};
  wire::EventReport report;
  report.events.push_back("{");
  report.events.push_back(events::to_json(drained, TimePoint{1}).dump());
  report.events.resize(200, R"({"event": "unheard"})");
  const testing::CapturedLog log;
  fixture.dispatch.notification("event.report", {7}, {.pid = 1, .uid = fixture.worker},
                                {.body = report.to_json()});
  CHECK(fixture.posted == 1);
  const std::string text = log.text();
  CHECK(text.starts_with("dropped malformed events connection=7 events=199 first=\""));
  CHECK(std::ranges::count(text, '\n') == 1);
}

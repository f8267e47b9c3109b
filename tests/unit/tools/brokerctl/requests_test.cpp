// `brokerctl requests`: rows of several workers, workers that do not answer, and cancellation.
#include "tools/brokerctl/requests.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

wire::RequestView row(const std::string& id,
                      wire::RequestState state = wire::RequestState::Decode) {
  return {.id = id, .state = state, .emitted_tokens = 7};
}

wire::Json page(std::vector<wire::RequestView> rows, bool more = false) {
  return wire::RequestPage{.items = std::move(rows), .more = more}.to_json();
}

struct Fixture : FakeBroker {
  void add_workers(const std::vector<std::pair<std::string, std::string>>& workers) {
    std::vector<wire::WorkerView> views;
    for (const auto& [worker, state] : workers) views.push_back({.worker = worker, .state = state});
    replies["worker.list"] = {items(views)};
  }
  std::vector<wire::Json> sent(const std::string& method) const {
    std::vector<wire::Json> found;
    for (const auto& [each, params] : calls)
      if (each == method) found.push_back(params);
    return found;
  }
};

}  // namespace

TEST_CASE("requests: all pages of all ready workers are rows in a stable order") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}, {"w2", "ready"}, {"w3", "attached"}});
  fixture.replies["request.list"] = {page({row("b/1"), row("b/2")}, true), page({row("a/1")}),
                                     page({row("c/1")})};
  const auto rows = read_requests({.tenant = TenantId{"b"}}, fixture.dependencies());
  REQUIRE(rows);
  REQUIRE(rows->requests.size() == 4);
  CHECK(rows->requests[0].id == "a/1");
  CHECK(rows->requests[0].worker == "w2");
  CHECK(rows->requests[3].id == "c/1");
  CHECK(rows->silent.empty());
  const auto sent = fixture.sent("request.list");
  REQUIRE(sent.size() == 3);
  CHECK(sent[1].at("worker") == "w2");
  CHECK(sent[2].at("worker") == "w1");
  CHECK(sent[2].at("after") == "b/2");
  CHECK(sent[2].at("tenant") == "b");
}

TEST_CASE("requests: a page of each worker is read at the same time") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}, {"w2", "ready"}});
  Dependencies dependencies = fixture.dependencies();
  std::vector<std::size_t> calls;
  dependencies.call_all = [&](std::string_view, const std::vector<wire::Json>& params) {
    calls.push_back(params.size());
    if (params.size() == 1) return std::vector<Result<wire::Json>>{page({row("a/2")})};
    return std::vector<Result<wire::Json>>{page({row("a/1")}, true),
                                           fail(Errc::TimedOut, "the worker does not reply")};
  };
  const auto rows = read_requests({}, dependencies);
  REQUIRE(rows);
  CHECK(rows->requests.size() == 2);
  REQUIRE(rows->silent.size() == 1);
  CHECK(rows->silent[0].worker == "w2");
  CHECK((calls == std::vector<std::size_t>{2, 1}));
}

TEST_CASE(
    "requests: get lists the named ones once each, also by their answers, and refuses others") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}});
  fixture.replies["request.list"] = {page({row("a/2")}), page({row("a/1"), row("a/2")}), page({})};
  const auto done = run_words(fixture, {"get", "request", "a/2", "cmpl-1", "a/3", "-o", "name"});
  CHECK(fixture.out.str() == "a/2\na/1\n");
  REQUIRE(!done);
  CHECK(done.error().code == Errc::UnknownRequest);
  CHECK(done.error().detail.contains("no worker has a request a/3"));
  const auto sent = fixture.sent("request.list");
  REQUIRE(sent.size() == 3);
  CHECK(sent[1].at("id") == "cmpl-1");
}

TEST_CASE("requests: a worker that does not answer is named, and the others are shown") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}, {"w2", "ready"}, {"w3", "lost"}});
  fixture.replies["request.list"] = {fail(Errc::TimedOut, "the worker does not reply"),
                                     page({row("a/1")})};
  const auto rows = read_requests({}, fixture.dependencies());
  REQUIRE(rows);
  CHECK(rows->requests.size() == 1);
  CHECK(requests_notes(*rows).contains("worker w1 is unreachable"));
  CHECK(requests_notes(*rows).contains("worker w3 is unreachable"));
  CHECK(requests_json(*rows).at("unreachable").size() == 2);
  CHECK(requests_json(*rows).at("items")[0].at("tenant") == "a");
  CHECK(requests_json(*rows).at("items")[0].at("state") == "decode");
}

TEST_CASE("requests: with -o name a worker that does not answer is an error, not a name") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}, {"w2", "ready"}});
  fixture.replies["request.list"] = {fail(Errc::TimedOut, "the worker does not reply"),
                                     page({row("a/1")})};
  const auto done = run_words(fixture, {"requests", "-o", "name"});
  CHECK(fixture.out.str() == "a/1\n");
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::TimedOut);
  CHECK(done.error().detail.contains("worker w1 did not answer"));
}

TEST_CASE("requests: pages that do not advance are an error of that worker") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}});
  fixture.replies["request.list"] = {page({row("a/1")}, true)};
  const auto rows = read_requests({}, fixture.dependencies());
  REQUIRE(rows);
  REQUIRE(rows->silent.size() == 1);
  CHECK(rows->silent[0].why.code == Errc::MalformedMessage);
}

TEST_CASE("requests: an unknown worker is an error") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}});
  CHECK(read_requests({.worker = "w9"}, fixture.dependencies()).error().code ==
        Errc::UnknownWorker);
}

TEST_CASE("requests cancel: each name is looked up, and its requests end on their workers") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}, {"w2", "ready"}});
  fixture.replies["request.list"] = {page({row("a/1")}), page({}), page({}), page({row("b/2")})};
  fixture.replies["request.stop"] = {wire::RequestsStopped{.ids = {"a/1"}}.to_json(),
                                     wire::RequestsStopped{.ids = {"b/2"}}.to_json()};
  const auto cancelled = cancel_requests({.ids = {"chatcmpl-1", "b/2"}}, fixture.dependencies());
  REQUIRE(cancelled);
  CHECK_FALSE(cancelled->problem);
  CHECK(cancelled_json(cancelled->requests).dump() ==
        R"({"cancelled":[{"id":"a/1","worker":"w1"},{"id":"b/2","worker":"w2"}]})");
  const auto sent = fixture.sent("request.stop");
  REQUIRE(sent.size() == 2);
  CHECK(sent[0] == wire::RequestStop{.worker = "w1", .ids = {"a/1"}}.to_json());
}

TEST_CASE("requests cancel: a name of two tenants' requests cancels nothing") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}});
  fixture.replies["request.list"] = {page({row("a/1"), row("b/1")})};
  const auto cancelled = cancel_requests({.ids = {"1"}}, fixture.dependencies());
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.error().code == Errc::BadRequest);
  CHECK(cancelled.error().detail.contains("a/1 and b/1"));
  CHECK(fixture.sent("request.stop").empty());
}

TEST_CASE("requests cancel: an X-Request-Id names one answer, with its choices, or nothing") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}});
  const auto of_answer = [](const std::string& id, const std::string& answer) {
    wire::RequestView view = row(id);
    view.answer = answer;
    view.x_request_id = "trace";
    return view;
  };
  fixture.replies["request.list"] = {
      page({of_answer("a/1", "cmpl-1"), of_answer("a/2", "cmpl-1")}),
      page({of_answer("a/1", "cmpl-1"), of_answer("a/3", "cmpl-3")})};
  fixture.replies["request.stop"] = {wire::RequestsStopped{.ids = {"a/1", "a/2"}}.to_json()};
  REQUIRE(cancel_requests({.ids = {"trace"}}, fixture.dependencies()));
  CHECK(fixture.sent("request.stop").size() == 1);
  const auto refused = cancel_requests({.ids = {"trace"}}, fixture.dependencies());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::BadRequest);
  CHECK(refused.error().detail.contains("of 2 requests, such as cmpl-1 and cmpl-3"));
  CHECK(fixture.sent("request.stop").size() == 1);
}

TEST_CASE("requests: one that moved to another worker is one row, on the worker that runs it") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}, {"w2", "ready"}});
  wire::RequestView http = row("a/1", wire::RequestState::Ending);
  http.key = ApiKeyId{"k"};
  http.answer = "cmpl-1";
  wire::RequestView runs = row("a/1");
  runs.lease = LeaseId{3, 1};
  for (const bool is_first : {true, false}) {
    fixture.replies["request.list"] = {page({is_first ? http : runs}),
                                       page({is_first ? runs : http})};
    const auto named = read_named_requests({}, {}, fixture.dependencies());
    REQUIRE(named);
    REQUIRE(named->rows.requests.size() == 1);
    const wire::RequestView& view = named->rows.requests[0];
    CHECK(view.worker == (is_first ? "w2" : "w1"));
    CHECK(view.state == wire::RequestState::Decode);
    CHECK(view.key == ApiKeyId{"k"});
    CHECK(view.answer == "cmpl-1");
  }
}

TEST_CASE("requests cancel: the error names the end of a request, or a silent worker") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}});
  fixture.replies["request.list"] = {
      wire::RequestPage{.ended = {{.id = "a/1", .reason = "StopSequence", .ago_ms = 2500}}}
          .to_json()};
  auto cancelled = cancel_requests({.ids = {"a/1"}}, fixture.dependencies());
  REQUIRE(cancelled);
  REQUIRE(cancelled->problem);
  CHECK(cancelled->problem->code == Errc::UnknownRequest);
  CHECK(cancelled->problem->detail == "request a/1 ended 2.5 s ago (StopSequence)");

  fixture.replies["request.list"] = {fail(Errc::TimedOut, "no reply")};
  cancelled = cancel_requests({.ids = {"a/1"}}, fixture.dependencies());
  REQUIRE(cancelled->problem);
  CHECK(cancelled->problem->code == Errc::TimedOut);
}

TEST_CASE("requests cancel: --all ends every request of the tenant, in parts that fit a message") {
  Fixture fixture;
  fixture.add_workers({{"w1", "ready"}});
  std::vector<wire::RequestView> many;
  for (int i = 0; i < 300; ++i) many.push_back(row("a/" + std::to_string(1000 + i)));
  fixture.replies["request.list"] = {page(many)};
  fixture.replies["request.stop"] = {wire::RequestsStopped{.ids = {"a/1000"}}.to_json()};
  const auto cancelled =
      cancel_requests({.all = true, .tenant = TenantId{"a"}}, fixture.dependencies());
  REQUIRE(cancelled);
  const auto sent = fixture.sent("request.stop");
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].at("ids").size() == 256);
  CHECK(sent[1].at("ids").size() == 44);
}

// An operator lists and stops the requests of the tenants' sockets, in any state.
#include "worker/serve/request_operations.hpp"

#include <map>

#include "tests/unit/worker/serve/server_fixture.hpp"

namespace leasehold::testing {
namespace {

const Error kStopped{Errc::RequestCancelled, "an operator cancelled this request"};

wire::RequestView row(const std::string& id, const std::string& answer = {}) {
  wire::RequestView view{.id = id};
  if (!answer.empty()) view.answer = answer;
  return view;
}

std::vector<std::string> ids_of(const std::vector<wire::RequestView>& views) {
  std::vector<std::string> ids;
  for (const wire::RequestView& view : views) ids.push_back(view.id);
  return ids;
}

struct OperationsFixture : ServerFixture {
  std::vector<wire::RequestView> listed(const wire::RequestList& list = {}) {
    return server->operations().views(list, {});
  }
  std::size_t stop(const std::string& id) {
    const RequestId ids[] = {{id}};
    return server->operations().stop(ids, kStopped).size();
  }
  /// Receives what the worker reports to the broker.
  void take(const std::string& method, const wire::Json& body, control::Responder respond) {
    CHECK(method == wire::UsageReport::kMethod);
    const auto report = wire::UsageReport::from_json(body).value();
    for (const wire::UsageRecord& each : report.records) usage.insert_or_assign(each.tenant, each);
    respond(control::Payload{});
  }
  OperationsFixture() {
    broker_peer = control::Peer::create(
        broker_socket->accept(),
        {.on_call =
             [this](const std::string& method, control::Payload params,
                    control::Responder respond) { take(method, params.body, std::move(respond)); },
         .on_notification = [](const std::string&, control::Payload) {},
         .on_closed = [](const Error&) {}});
    broker_peer->start();
  }

  std::map<TenantId, wire::UsageRecord> usage;
  std::shared_ptr<control::Peer> broker_peer;
};

}  // namespace

TEST_CASE("request operations: a request is meant by its ids and by those of its HTTP answer") {
  const RequestId id{"ann/req-1"};
  for (const char* text : {"ann/req-1", "req-1", "cmpl-req-1", "chatcmpl-req-1", "resp_req-1"})
    CHECK(is_named(id, text));
  for (const char* text : {"bob/req-1", "req", "req-10", "cmpl-", "ann/chatcmpl-req-1", ""})
    CHECK_FALSE(is_named(id, text));
}

TEST_CASE("request operations: pages of both lists have each request once, in order") {
  wire::RequestList list{.limit = 2};
  auto page = page_of(list, {row("a/1"), row("a/3"), row("a/4")},
                      {row("a/3", "cmpl-3"), row("a/2", "cmpl-2")});
  CHECK(ids_of(page.items) == std::vector<std::string>{"a/1", "a/2"});
  CHECK(page.more);
  list.after = "a/2";
  page = page_of(list, {row("a/3"), row("a/4")}, {row("a/3", "cmpl-3")});
  CHECK(ids_of(page.items) == std::vector<std::string>{"a/3", "a/4"});
  CHECK(page.items[0].answer == "cmpl-3");
  CHECK_FALSE(page.more);
}

TEST_CASE("request operations: the list keeps what it asks for") {
  const std::vector<wire::RequestView> all{row("a/1", "cmpl-9"), row("a/2"), row("b/1")};
  const auto kept = [&](const wire::RequestList& list) {
    auto views = all;
    keep_listed(list, views);
    return ids_of(views);
  };
  CHECK(kept({.tenant = TenantId{"a"}}) == std::vector<std::string>{"a/1", "a/2"});
  CHECK(kept({.id = "1"}) == std::vector<std::string>{"a/1", "b/1"});
  CHECK(kept({.id = "cmpl-9"}) == std::vector<std::string>{"a/1"});
  CHECK(kept({.after = "a/1"}) == std::vector<std::string>{"a/2", "b/1"});
}

TEST_CASE("request operations: a request stopped while it is parsed gets its error at once") {
  OperationsFixture fixture;
  const auto ann = fixture.tenant();
  fixture.generate(*ann, "r");
  fixture.wait_until_seen(*ann);
  REQUIRE(fixture.listed().size() == 1);
  CHECK(fixture.listed()[0].state == wire::RequestState::Parsing);

  CHECK(fixture.stop("ann/r") == 1);
  run_until(fixture.io, [&] { return ann->answers.contains("r"); });
  CHECK(ann->answers.at("r").error().code == Errc::RequestCancelled);
  CHECK(fixture.listed()[0].state == wire::RequestState::Ending);  // the parser still has its text
  CHECK(fixture.stop("ann/r") == 1);                               // harmless
  CHECK(fixture.parse() == 1);
  CHECK(fixture.listed().empty());
  CHECK(fixture.stop("ann/r") == 0);
  fixture.start_engine();
  ann->answers.clear();
  fixture.generate(*ann, "r");  // the id is free again
  fixture.wait_until_seen(*ann);
  CHECK(fixture.parse() == 1);
  run_until(fixture.io, [&] { return ann->has_ended(); });
  CHECK(ann->seen.notifications.back().second.body.at("reason") != "RequestCancelled");
}

TEST_CASE("request operations: stopping a request leaves the others, and its end is typed") {
  OperationsFixture fixture;
  const auto ann = fixture.tenant();
  const auto bob = fixture.tenant("bob");
  fixture.generate(*ann, "r");
  fixture.generate(*bob, "r");
  fixture.wait_until_seen(*ann);
  fixture.wait_until_seen(*bob);
  while (fixture.parse() > 0) {
  }
  const auto views = fixture.listed();
  CHECK(ids_of(views) == std::vector<std::string>{"ann/r", "bob/r"});
  CHECK(views[0].state == wire::RequestState::Waiting);
  CHECK(views[0].lease == fixture.lease);
  CHECK(views[0].max_emitted_tokens == 4);
  CHECK(fixture.stop("carl/r") == 0);
  CHECK(fixture.stop("ann/r") == 1);
  fixture.start_engine();
  run_until(fixture.io, [&] { return ann->has_ended() && bob->has_ended(); });

  const auto& end = ann->seen.notifications.back().second.body;
  CHECK(end.at("reason") == "RequestCancelled");
  CHECK(end.at("detail") == "an operator cancelled this request");
  CHECK(bob->seen.notifications.back().second.body.at("emitted_tokens") == 4);
  CHECK(fixture.metrics.completed(CompletionReason::RequestCancelled) == 1);
  run_until(fixture.io, [&] { return fixture.usage.size() == 2; });
  CHECK(fixture.usage.at({"ann"}).prompt_tokens == 0);  // none was computed
  CHECK(fixture.usage.at({"bob"}).prompt_tokens > 0);

  const auto ended = fixture.server->operations().ended({.id = "ann/r"});
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].reason == "RequestCancelled");
  CHECK(fixture.server->operations().ended({.tenant = TenantId{"bob"}, .id = "ann/r"}).empty());
}

TEST_CASE("request operations: a request that was stopped and revoked is not to be retried") {
  OperationsFixture fixture;
  const auto ann = fixture.tenant();
  fixture.generate(*ann, "r");
  fixture.wait_until_seen(*ann);
  fixture.parse();
  CHECK(fixture.stop("ann/r") == 1);
  fixture.rig.revoke(fixture.lease);
  fixture.start_engine();
  run_until(fixture.io, [&] { return ann->has_ended() || ann->answers.contains("r"); });
  const bool is_refused = ann->answers.contains("r") && !ann->answers.at("r");
  if (is_refused) CHECK(ann->answers.at("r").error().code == Errc::RequestCancelled);
  if (!is_refused) {
    run_until(fixture.io, [&] { return ann->has_ended(); });
    CHECK(ann->seen.notifications.back().second.body.at("reason") == "RequestCancelled");
  }
}

TEST_CASE("request operations: a request that its client cancelled keeps that reason") {
  OperationsFixture fixture;
  const auto ann = fixture.tenant();
  fixture.generate(*ann, "r");
  fixture.wait_until_seen(*ann);
  fixture.parse();
  fixture.cancel(*ann, "r");
  run_until(fixture.io, [&] { return ann->answers.contains("cancel r"); });
  CHECK(fixture.stop("ann/r") == 1);
  fixture.start_engine();
  run_until(fixture.io, [&] { return ann->has_ended(); });
  CHECK(ann->seen.notifications.back().second.body.at("reason") == "Cancelled");
}

}  // namespace leasehold::testing

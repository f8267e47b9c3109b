// One request is listed and ended, by an operator or its owner, with real processes.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {
namespace {

wire::RequestPage requests_of(System& system) {
  control::Client broker = control::Client::connect(system.broker_socket()).value();
  const wire::RequestList list{.worker = "w1"};
  return wire::RequestPage::from_json(
             broker.call(std::string(list.kMethod), {.body = list.to_json()}).value().body)
      .value();
}

bool has_request(System& system, const std::string& id, wire::RequestState state) {
  return std::ranges::any_of(requests_of(system).items, [&](const wire::RequestView& view) {
    return view.id == id && view.state == state;
  });
}

std::string cancel_path(const std::string& id) {
  return "/v1/requests/" + id + "/cancel";
}

}  // namespace

TEST_CASE(
    "requests: one is ended while it waits or runs, and its neighbour's text stays the same") {
  // The second worker gets a port of its own.
  HttpSystem http({"--slow-motion-us", "30"}, HttpSystem::Transport::Tcp);
  System& system = http.system();
  const std::string key = http.admit("ann");
  const std::string foreign_key = http.admit("eve");
  system.admit("bob");
  REQUIRE(system.brokerctl({"tenants", "admit", "bob", "--max-concurrent", "1"}) == 0);
  const TenantSpec neighbour{.tenant = "bob", .max_tokens = 100, .rebind = true};
  const auto alone = system.undisturbed(neighbour);
  const auto bob = system.start_streaming(neighbour, 4);

  TenantSpec waits = neighbour;
  waits.more = {"--request-id", "later"};
  const auto later = system.start_tenant(waits);
  REQUIRE(
      eventually([&] { return has_request(system, "bob/later", wire::RequestState::Waiting); }));
  CHECK(system.brokerctl({"requests", "cancel", "bob/later"}) == 0);
  CHECK(later->finish() == exit_code(Errc::RequestCancelled));
  CHECK(system.brokerctl({"requests", "cancel", "bob/later"}) == exit_code(Errc::UnknownRequest));

  Json body = http.completion(key, 400, true);
  body["request_id"] = "text";
  body["n"] = 2;
  HttpClient stream(http.path());
  stream.write(post("/v1/completions", key, body));
  REQUIRE(stream.read_until(has_events(4)));
  CHECK(has_request(system, "ann/text", wire::RequestState::Decode));
  CHECK(system.brokerctl({"requests", "cancel", "cmpl-text"}) == 0);
  const auto events = stream.reply().events();
  REQUIRE(events.size() > 2);
  CHECK(events.back() == "[DONE]");
  CHECK(Json::parse(events.at(events.size() - 2)).at("error").at("code") == "RequestCancelled");

  body["request_id"] = "own";
  body["stream"] = false;
  body.erase("stream_options");
  HttpClient whole(http.path());
  whole.write(post("/v1/completions", key, body));
  REQUIRE(eventually(
      [&] { return http.send(get("/v1/requests", key)).body.contains(R"("id":"cmpl-own")"); }));
  CHECK(http.send(get("/v1/requests", foreign_key)).json().at("data").empty());
  CHECK(http.send(post(cancel_path("cmpl-own"), foreign_key, Json::object())).status == 404);
  CHECK(http.send(post(cancel_path("cmpl-own"), key, Json::object())).json().at("status") ==
        "cancelled");
  const HttpReply refused = whole.reply();
  CHECK(refused.status == 499);
  CHECK(refused.json().at("error").at("code") == "RequestCancelled");
  // While a choice ends, another cancel is harmless.
  CHECK(eventually(
      [&] { return http.send(post(cancel_path("cmpl-own"), key, Json::object())).status == 404; }));

  check_whole(*bob, alone);
  system.start_ready_worker("w2");
  body["request_id"] = "moved";
  HttpClient moved(http.path());
  moved.write(post("/v1/completions", key, body));
  REQUIRE(eventually([&] { return has_request(system, "ann/moved", wire::RequestState::Decode); }));
  REQUIRE(system.brokerctl({"worker", "replace", "w1", "w2"}) == 0);
  REQUIRE(
      eventually([&] { return !has_request(system, "ann/moved", wire::RequestState::Decode); }));
  CHECK(http.send(post(cancel_path("cmpl-moved"), key, Json::object())).json().at("status") ==
        "cancelled");
  CHECK(moved.reply().status == 499);
  const auto actions = system.recorded<events::OperatorAction>();
  const auto is_cancel = [](const events::OperatorAction& each) { return each.action == "cancel"; };
  CHECK(std::ranges::count_if(actions, is_cancel) == 3);  // `later`, and two choices of `text`
  system.while_worker_stopped(
      [&] { CHECK(system.brokerctl({"requests"}) == exit_code(Errc::TimedOut)); });
}

}  // namespace leasehold::testing

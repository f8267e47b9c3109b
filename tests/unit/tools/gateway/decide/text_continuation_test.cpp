// One request from its start to its end: what the client receives, and which errors it sees.
#include "tests/unit/tools/gateway/decide/gateway_case.hpp"

using namespace leasehold;
using namespace leasehold::gateway;
using namespace leasehold::gateway::testing;

TEST_CASE("text: a whole stream is forwarded without its marks") {
  GatewayCase gateway;
  const AttemptId host = gateway.begin();
  gateway.bytes(host, ": b\n\n" + group(0, 0, 5) + group(0, 1, 6) + kEnding);
  CHECK(gateway.client == "data: 5\n\ndata: 6\n\ndata: [DONE]\n\n");
  CHECK(gateway.only<Finish>().attempt == host);
  CHECK(gateway.all<CloseHost>().empty());
  CHECK(gateway.text.has_ended());
  CHECK_FALSE(gateway.text.next_deadline().has_value());
}

TEST_CASE("text: nothing is forwarded or opened after the end") {
  GatewayCase gateway;
  const AttemptId host = gateway.begin();
  gateway.bytes(host, kEnding);
  for (const TextEvent& late :
       {TextEvent(HostBytes{host, "data: x\n: t 0 0 1\n\n"}), TextEvent(lost(host)),
        TextEvent(TimerFired{}), TextEvent(ClientLeft{}),
        TextEvent(GatewayStopped{{Errc::Draining, "stops"}}),
        TextEvent(HostAccepted{host, kIdentity})}) {
    gateway.on(late);
    CHECK(gateway.actions.empty());
  }
}

TEST_CASE("text: without a stream the answer is one document, moved or not") {
  GatewayCase gateway({.model = "m", .form = AnswerForm::Document});
  const AttemptId first = gateway.begin();
  gateway.bytes(first, ": t 0 0 5\n\n: t 0 1 6\n\n");
  gateway.on(lost(first));
  CHECK(gateway.opened.emitted == EmittedTokens{{5, 6}});
  gateway.accept(gateway.opened.attempt);
  gateway.bytes(gateway.opened.attempt, ": t 0 2 7\n\nevent: answer\ndata: {\"all\":1}\n\n: e\n\n");
  CHECK(gateway.only<Finish>().document == "{\"all\":1}");
  CHECK(gateway.client.empty());
}

TEST_CASE("text: a request that every host refuses gets the last host's answer, each asked once") {
  GatewayCase gateway;
  gateway.on(RequestArrived{});
  std::vector<HostId> asked;
  for (int i = 0; i < 3; ++i) {
    asked.push_back(gateway.opened.host);
    const AttemptId attempt = gateway.opened.attempt;
    gateway.on(HostRefused{attempt, 503, Error{Errc::QueueFull, "full"}});
    if (i == 2) CHECK(gateway.only<PassAnswer>().attempt == attempt);
  }
  std::ranges::sort(asked);
  CHECK(asked == std::vector{HostId{0}, HostId{1}, HostId{2}});
  CHECK(gateway.text.has_ended());
}

TEST_CASE("text: an error of the request is passed on at once") {
  for (const Errc code : {Errc::BadRequest, Errc::BadToken, Errc::QuotaTokens}) {
    GatewayCase gateway;
    gateway.on(RequestArrived{});
    const AttemptId first = gateway.opened.attempt;
    gateway.on(HostRefused{first, 400, Error{code, "no"}});
    CHECK(gateway.only<PassAnswer>().attempt == first);
    CHECK(gateway.all<OpenHost>().empty());
  }
}

TEST_CASE("text: a status without a code moves only if it may be the host's") {
  GatewayCase gateway;
  gateway.on(RequestArrived{});
  gateway.on(HostRefused{gateway.opened.attempt, 502, {}});
  CHECK(gateway.only<OpenHost>().cause == MoveCause::Error);
  gateway.on(HostRefused{gateway.opened.attempt, 404, {}});
  CHECK(gateway.all<PassAnswer>().size() == 1);
}

TEST_CASE("text: without a host a new request fails with the reason") {
  GatewayCase gateway({.model = "other"});
  gateway.on(RequestArrived{});
  CHECK(gateway.only<FailRequest>().error.code == Errc::UnknownWorker);
  GatewayCase unreachable;
  unreachable.on(RequestArrived{});
  for (int i = 0; i < 3; ++i) unreachable.on(lost(unreachable.opened.attempt));
  CHECK(unreachable.only<FailRequest>().error.code == Errc::ConnectionLost);
}

TEST_CASE("text: the request's own error ends the stream with the host's event") {
  GatewayCase gateway;
  const AttemptId host = gateway.begin();
  gateway.bytes(host, group(0, 0, 5) + "data: {\"error\":1}\n\n: x RequestCancelled 0\n\n");
  CHECK(gateway.client == "data: 5\n\ndata: {\"error\":1}\n\n");
  CHECK(gateway.only<FailRequest>().error.code == Errc::RequestCancelled);
  CHECK(gateway.only<FailRequest>().is_announced);
  CHECK(gateway.only<CloseHost>().attempt == host);
}

TEST_CASE("text: the request's own error without a stream keeps the host's body") {
  GatewayCase gateway({.model = "m", .form = AnswerForm::Document});
  gateway.bytes(gateway.begin(), "event: error\ndata: {\"error\":1}\n\n: x TimedOut 0\n\n");
  CHECK(gateway.only<FailRequest>().document == "{\"error\":1}");
  CHECK_FALSE(gateway.only<FailRequest>().is_announced);
}

TEST_CASE("text: a client that leaves ends its exchanges") {
  GatewayCase gateway;
  const AttemptId host = gateway.begin();
  gateway.on(ClientLeft{});
  CHECK(gateway.only<CloseHost>().attempt == host);
  CHECK(gateway.actions.size() == 1);
  CHECK(gateway.text.has_ended());
}

TEST_CASE("text: a gateway that stops ends the text with its error") {
  GatewayCase gateway;
  const AttemptId host = gateway.begin();
  gateway.on(GatewayStopped{{Errc::Draining, "stops"}});
  CHECK(gateway.only<FailRequest>().error == Error{Errc::Draining, "stops"});
  CHECK(gateway.only<CloseHost>().attempt == host);
  CHECK(gateway.text.has_ended());
}

TEST_CASE("text: a body that cannot be sent again stays with its host") {
  GatewayCase gateway({.model = "m", .is_replayable = false});
  gateway.bytes(gateway.begin(), group(0, 0, 5));
  gateway.on(lost(gateway.opened.attempt));
  CHECK(gateway.all<OpenHost>().empty());
  CHECK(gateway.only<FailRequest>().error.detail.contains("too large"));
  GatewayCase refused({.model = "m", .is_replayable = false});
  refused.on(RequestArrived{});
  refused.on(HostRefused{refused.opened.attempt, 503, Error{Errc::Draining, "drains"}});
  CHECK(refused.all<PassAnswer>().size() == 1);
}

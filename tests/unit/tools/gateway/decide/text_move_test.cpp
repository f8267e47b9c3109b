// How a text moves: why, where to, with which tokens, and when it stops moving.
#include "tests/unit/tools/gateway/decide/gateway_case.hpp"

using namespace leasehold;
using namespace leasehold::gateway;
using namespace leasehold::gateway::testing;

TEST_CASE("text: a lost host's text continues with what was forwarded, an incomplete group again") {
  GatewayCase gateway({.model = "m", .limits = {.choices = 2}});
  const AttemptId first = gateway.begin();
  const HostId first_host = gateway.opened.host;
  gateway.bytes(first, group(0, 0, 5) + group(1, 0, 8) + group(0, 1, 6) + "data: 9\n: t 1 1 9\n");
  gateway.on(lost(first));
  const OpenHost next = gateway.only<OpenHost>();
  CHECK(next.host != first_host);
  CHECK(next.emitted == EmittedTokens{{5, 6}, {8}});
  CHECK(next.moved_from == first_host);
  CHECK(next.may_run_there);
  CHECK(next.cause == MoveCause::Lost);
  gateway.accept(next.attempt);
  gateway.bytes(next.attempt, group(1, 1, 9) + kEnding);
  CHECK(gateway.client == "data: 5\n\ndata: 8\n\ndata: 6\n\ndata: 9\n\ndata: [DONE]\n\n");
  CHECK(gateway.text.moves() == 1);
}

TEST_CASE("text: an ended lease moves it, and the host's error event is not shown") {
  GatewayCase gateway;
  const AttemptId first = gateway.begin();
  gateway.bytes(first, group(0, 0, 5) + "data: {\"error\":1}\n\n: x LeaseRevoked 0\n\n");
  CHECK(gateway.client == "data: 5\n\n");
  CHECK(gateway.only<OpenHost>().cause == MoveCause::Error);
  CHECK_FALSE(gateway.only<OpenHost>().may_run_there);
  CHECK(gateway.only<CloseHost>().attempt == first);
}

TEST_CASE("text: with tokens it goes to no host that computes otherwise") {
  GatewayCase gateway;
  const AttemptId first = gateway.begin();
  gateway.bytes(first, group(0, 0, 5));
  gateway.on(lost(first));
  const AttemptId liar = gateway.opened.attempt;
  gateway.accept(liar, kOtherArithmetic);
  CHECK(gateway.only<CloseHost>().attempt == liar);
  CHECK(gateway.only<OpenHost>().cause == MoveCause::OtherIdentity);
  gateway.accept(gateway.opened.attempt, kIdentity);
  CHECK(gateway.text.moves() == 1);
}

TEST_CASE("text: with any_arithmetic the model alone must be equal") {
  GatewayCase gateway({.model = "m", .any_arithmetic = true});
  const AttemptId first = gateway.begin();
  gateway.bytes(first, group(0, 0, 5));
  gateway.on(lost(first));
  gateway.accept(gateway.opened.attempt, kOtherArithmetic);
  CHECK(gateway.actions.empty());
  gateway.on(lost(gateway.opened.attempt));
  gateway.accept(gateway.opened.attempt, kOtherModel);
  CHECK(gateway.all<CloseHost>().size() == 1);
}

TEST_CASE("text: the last error names any_arithmetic if that would have helped") {
  for (const std::string& identity : {kOtherArithmetic, kOtherModel}) {
    GatewayCase gateway;
    for (std::uint64_t i = 0; i < 3; ++i) gateway.report(HostId{i}, "", identity);
    const AttemptId first = gateway.begin();
    gateway.bytes(first, group(0, 0, 5));
    gateway.on(lost(first));
    gateway.wait(seconds(31));
    const std::string detail = gateway.only<FailRequest>().error.detail;
    CHECK(detail.contains("within 30000 ms"));
    CHECK(detail.contains("any_arithmetic") == (identity == kOtherArithmetic));
  }
}

TEST_CASE("text: without tokens it may begin again on another model's identity") {
  GatewayCase gateway;
  gateway.on(lost(gateway.begin()));
  gateway.accept(gateway.opened.attempt, kOtherArithmetic);
  CHECK(gateway.actions.empty());
}

TEST_CASE("text: of a host that names no identity no other one continues the text") {
  GatewayCase gateway;
  gateway.on(RequestArrived{});
  gateway.accept(gateway.opened.attempt, "");
  gateway.bytes(gateway.opened.attempt, group(0, 0, 5));
  gateway.on(lost(gateway.opened.attempt));
  CHECK(gateway.only<FailRequest>().error.detail.contains("no identity"));
}

TEST_CASE("text: a host that breaks the form is left, and named by the final error") {
  GatewayCase gateway({.model = "m", .max_moves = 0});
  const AttemptId host = gateway.begin();
  gateway.bytes(host, group(0, 0, 5) + group(0, 2, 7));
  CHECK(gateway.client == "data: 5\n\n");
  const Error error = gateway.only<FailRequest>().error;
  CHECK(error.code == Errc::MalformedMessage);
  CHECK(error.detail.contains(gateway.hosts.address(gateway.opened.host)));
}

TEST_CASE("text: it moves as often as it may, and then fails with the last error") {
  GatewayCase gateway({.model = "m", .max_moves = 2});
  gateway.bytes(gateway.begin(), group(0, 0, 5));
  for (int i = 0; i < 2; ++i) {
    gateway.on(lost(gateway.opened.attempt));
    gateway.accept(gateway.opened.attempt);
  }
  CHECK(gateway.text.moves() == 2);
  gateway.on(lost(gateway.opened.attempt));
  CHECK(gateway.only<FailRequest>().error.code == Errc::ConnectionLost);
  CHECK(gateway.only<FailRequest>().error.detail.contains("moved 2 times"));
}

TEST_CASE("text: it waits for a host, and no longer than the move timeout") {
  GatewayCase gateway({.model = "m", .move_timeout = seconds(2)});
  gateway.bytes(gateway.begin(), group(0, 0, 5));
  for (std::uint64_t i = 0; i < 3; ++i) gateway.hosts.unreachable(HostId{i});
  gateway.on(lost(gateway.opened.attempt));
  CHECK(gateway.actions.empty());
  gateway.wait(milliseconds(100));
  CHECK(gateway.actions.empty());
  GatewayCase other = gateway;
  gateway.report(HostId{1});
  gateway.wait(milliseconds(100));
  CHECK(gateway.only<OpenHost>().host == HostId{1});
  for (int i = 0; i < 18; ++i) other.wait(milliseconds(100));
  CHECK(other.actions.empty());
  other.wait(milliseconds(100));
  CHECK(other.only<FailRequest>().error.detail.contains("2000 ms"));
}

TEST_CASE("text: refusals do not count as moves, and a tenant's limit is waited for") {
  GatewayCase gateway({.model = "m", .max_moves = 1});
  gateway.bytes(gateway.begin(), group(0, 0, 5));
  gateway.on(lost(gateway.opened.attempt));
  for (int i = 0; i < 2; ++i) {
    gateway.on(HostRefused{gateway.opened.attempt, 429,
                           Error{Errc::QuotaConcurrent, "busy", FailureScope::Tenant, 700}});
  }
  CHECK(gateway.actions.empty());
  gateway.wait(milliseconds(700));
  gateway.accept(gateway.only<OpenHost>().attempt);
  CHECK(gateway.text.moves() == 1);
}

TEST_CASE("text: a host's refusal of the continued request is the client's error") {
  GatewayCase gateway;
  gateway.bytes(gateway.begin(), group(0, 0, 5));
  gateway.on(lost(gateway.opened.attempt));
  gateway.on(HostRefused{gateway.opened.attempt, 400, Error{Errc::PromptTooLong, "too long"}});
  CHECK(gateway.only<FailRequest>().error.code == Errc::PromptTooLong);
}

TEST_CASE("text: a host that lacks its key is left for good, and another one continues it") {
  GatewayCase gateway({.model = "m", .move_timeout = seconds(2)});
  const Error no_key{Errc::BadToken, "the key is not known"};
  gateway.bytes(gateway.begin(), group(0, 0, 5));
  gateway.on(lost(gateway.opened.attempt));
  const HostId without_key = gateway.opened.host;
  gateway.on(HostRefused{gateway.opened.attempt, 401, no_key});
  CHECK(gateway.only<OpenHost>().host != without_key);
  GatewayCase refused_by_all = gateway;
  gateway.accept(gateway.opened.attempt);
  gateway.bytes(gateway.opened.attempt, group(0, 1, 6) + kEnding);
  CHECK(gateway.client == "data: 5\n\ndata: 6\n\ndata: [DONE]\n\n");

  refused_by_all.on(HostRefused{refused_by_all.opened.attempt, 401, no_key});
  refused_by_all.wait(milliseconds(500));  // the first host is asked again: it had the key
  refused_by_all.on(HostRefused{refused_by_all.only<OpenHost>().attempt, 401, no_key});
  refused_by_all.wait(milliseconds(1'400));
  CHECK(refused_by_all.actions.empty());
  refused_by_all.wait(milliseconds(100));
  CHECK(refused_by_all.only<FailRequest>().error.code == Errc::BadToken);
}

TEST_CASE("text: a key that is revoked while the text runs ends it") {
  GatewayCase gateway;
  gateway.bytes(gateway.begin(), group(0, 0, 5) + "data: revoked\n\n: x BadToken 0\n\n");
  CHECK(gateway.only<FailRequest>().error.code == Errc::BadToken);
  CHECK(gateway.all<OpenHost>().empty());
}

TEST_CASE("text: events of closed exchanges are ignored") {
  GatewayCase gateway;
  const AttemptId first = gateway.begin();
  gateway.bytes(first, group(0, 0, 5));
  gateway.on(lost(first));
  for (const TextEvent& late :
       {TextEvent(HostBytes{first, "data: 6\n: t 0 1 6\n\n"}), TextEvent(lost(first)),
        TextEvent(HostAccepted{first, kOtherModel}), TextEvent(HostRefused{first, 400, {}})}) {
    gateway.on(late);
    CHECK(gateway.actions.empty());
  }
  CHECK(gateway.client == "data: 5\n\n");
}

namespace {

/// A text with three tokens on a host that begins to drain, and its successor.
struct Drain : GatewayCase {
  Drain() {
    old = begin();
    bytes(old, group(0, 0, 5) + group(0, 1, 6));
    report(opened.host, "Draining");
    bytes(old, group(0, 2, 7));
    next = only<OpenHost>().attempt;
  }
  AttemptId old;
  AttemptId next;
};

}  // namespace

TEST_CASE("drain: the successor is opened before the old host is closed") {
  Drain drain;
  CHECK(drain.opened.cause == MoveCause::Draining);
  CHECK(drain.opened.emitted == EmittedTokens{{5, 6, 7}});
  CHECK(drain.all<CloseHost>().empty());
  drain.accept(drain.next);
  CHECK(drain.actions.empty());
  drain.bytes(drain.old, group(0, 3, 8));
  drain.bytes(drain.next, group(0, 3, 8));
  CHECK(drain.only<CloseHost>().attempt == drain.old);
  drain.bytes(drain.next, group(0, 4, 9) + kEnding);
  CHECK(drain.client == "data: 5\n\ndata: 6\n\ndata: 7\n\ndata: 8\n\ndata: 9\n\ndata: [DONE]\n\n");
  CHECK(drain.text.moves() == 1);
}

TEST_CASE("sleep: a text leaves a sleeping host for one that is awake, and wakes no other") {
  GatewayCase gateway;
  const AttemptId old = gateway.begin();
  gateway.bytes(old, group(0, 0, 5));
  for (std::uint64_t i = 0; i < 3; ++i) gateway.report_asleep(HostId{i});
  gateway.bytes(old, ": b\n\n");
  CHECK(gateway.actions.empty());
  const HostId awake{gateway.opened.host == HostId{0} ? 1u : 0u};
  gateway.report(awake);
  gateway.wait(milliseconds(200));
  CHECK(gateway.only<OpenHost>().host == awake);
  gateway.accept(gateway.opened.attempt);
  gateway.bytes(gateway.opened.attempt, group(0, 1, 6) + kEnding);
  CHECK(gateway.client == "data: 5\n\ndata: 6\n\ndata: [DONE]\n\n");
}

TEST_CASE("drain: a successor that is far behind is asked again with the tokens of now") {
  Drain drain;
  drain.accept(drain.next);
  drain.bytes(drain.old, group(0, 3, 8) + group(0, 4, 9) + group(0, 5, 10));
  drain.bytes(drain.next, group(0, 3, 8));
  CHECK(drain.only<CloseHost>().attempt == drain.next);
  CHECK(drain.only<OpenHost>().emitted == EmittedTokens{{5, 6, 7, 8, 9, 10}});
  CHECK(drain.opened.cause == MoveCause::None);  // one move
  const AttemptId again = drain.opened.attempt;
  drain.accept(again);
  drain.bytes(drain.old, group(0, 6, 11));
  drain.bytes(again, group(0, 6, 11));
  CHECK(drain.only<CloseHost>().attempt == drain.old);
  CHECK(drain.text.moves() == 1);
}

TEST_CASE("drain: when the old host ends first, the successor continues without a repeated token") {
  Drain drain;
  drain.accept(drain.next);
  drain.bytes(drain.old, group(0, 3, 8) + "data: e\n\n: x Draining 0\n\n");
  CHECK(drain.only<CloseHost>().attempt == drain.old);
  drain.bytes(drain.next, group(0, 3, 8) + group(0, 4, 9) + kEnding);
  CHECK(drain.client == "data: 5\n\ndata: 6\n\ndata: 7\n\ndata: 8\n\ndata: 9\n\ndata: [DONE]\n\n");
}

TEST_CASE("drain: a successor with another token, or that ends too early, is left") {
  Drain drain;
  drain.accept(drain.next);
  drain.bytes(drain.old, group(0, 3, 8));
  SECTION("another token") {
    drain.bytes(drain.next, group(0, 3, 99));
  }
  SECTION("an early end") {
    drain.bytes(drain.next, kEnding);
  }
  SECTION("another identity") {
    Drain other;
    other.accept(other.next, kOtherArithmetic);
    CHECK(other.all<CloseHost>().at(0).attempt == other.next);
    return;
  }
  CHECK(drain.all<CloseHost>().at(0).attempt == drain.next);
  drain.bytes(drain.old, group(0, 4, 9) + kEnding);
  CHECK(drain.client == "data: 5\n\ndata: 6\n\ndata: 7\n\ndata: 8\n\ndata: 9\n\ndata: [DONE]\n\n");
}

TEST_CASE("drain: without another host the text stays where it is") {
  GatewayCase gateway;
  const AttemptId host = gateway.begin();
  for (std::uint64_t i = 0; i < 3; ++i) gateway.report(HostId{i}, "Draining");
  gateway.bytes(host, group(0, 0, 5));
  CHECK(gateway.actions.size() == 1);
  gateway.bytes(host, kEnding);
  CHECK(gateway.all<Finish>().size() == 1);
}

TEST_CASE("text: when its host leaves the list, another one runs before it is left") {
  GatewayCase gateway;
  const AttemptId first = gateway.begin();
  const HostId host = gateway.opened.host;
  gateway.bytes(first, group(0, 0, 5));
  std::vector<std::string> list;
  for (std::uint64_t i = 0; i < 3; ++i)
    if (HostId{i} != host) list.push_back(gateway.hosts.address(HostId{i}));
  REQUIRE(gateway.hosts.set_list(list).has_value());
  gateway.bytes(first, ": b\n\n");
  CHECK(gateway.only<OpenHost>().cause == MoveCause::Draining);
  CHECK(gateway.all<CloseHost>().empty());
  const AttemptId next = gateway.opened.attempt;
  gateway.accept(next);
  gateway.bytes(next, group(0, 1, 6));
  CHECK(gateway.only<CloseHost>().attempt == first);
  CHECK(gateway.client == "data: 5\n\ndata: 6\n\n");
}

TEST_CASE("text: with no equal host in the list it ends where it is") {
  GatewayCase gateway;
  for (std::uint64_t i = 0; i < 3; ++i)
    gateway.report(HostId{i}, "", i == 0 ? kIdentity : kOtherModel);
  gateway.on(RequestArrived{});
  while (gateway.opened.host != HostId{0}) gateway.on(lost(gateway.opened.attempt));
  gateway.accept(gateway.opened.attempt);
  gateway.bytes(gateway.opened.attempt, group(0, 0, 5));
  REQUIRE(gateway.hosts.set_list({"b:1", "c:1"}).has_value());
  gateway.bytes(gateway.opened.attempt, group(0, 1, 6));
  CHECK(gateway.all<OpenHost>().empty());
  gateway.bytes(gateway.opened.attempt, kEnding);
  CHECK(gateway.client == "data: 5\n\ndata: 6\n\ndata: [DONE]\n\n");
}

TEST_CASE("text: a successor whose host leaves the list is not asked again") {
  GatewayCase gateway;
  const AttemptId first = gateway.begin();
  const HostId host = gateway.opened.host;
  gateway.bytes(first, group(0, 0, 5));
  gateway.report(host, "Draining");
  gateway.bytes(first, group(0, 1, 6));
  const AttemptId next = gateway.only<OpenHost>().attempt;
  gateway.accept(next);
  REQUIRE(gateway.hosts.set_list({gateway.hosts.address(host)}).has_value());
  gateway.bytes(first, group(0, 2, 7) + group(0, 3, 8) + group(0, 4, 9));
  gateway.bytes(next, group(0, 2, 7));  // two behind
  CHECK(gateway.actions.empty());
  gateway.bytes(next, group(0, 3, 8));
  CHECK(gateway.only<CloseHost>().attempt == first);
}

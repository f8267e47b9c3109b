// Hosts that fall silent: when another one begins beside them, and when they are left.
#include "tests/unit/tools/gateway/decide/gateway_case.hpp"

using namespace leasehold;
using namespace leasehold::gateway;
using namespace leasehold::gateway::testing;

TEST_CASE("text: three missing beats move it, beats of a long prefill do not") {
  GatewayCase gateway;
  const AttemptId host = gateway.begin();
  for (int i = 0; i < 20; ++i) {
    gateway.wait(milliseconds(1400));
    gateway.bytes(host, ": b\n\n");
  }
  const OpenHost next = gateway.fall_silent();
  CHECK(next.cause == MoveCause::Silent);
  CHECK(gateway.text.next_deadline() == gateway.now + milliseconds(100));  // to look at that host
  gateway.accept(next.attempt);
  gateway.wait(milliseconds(450));
  CHECK(gateway.actions.empty());
  gateway.wait(milliseconds(50));
  CHECK(gateway.only<CloseHost>().attempt == host);
  CHECK(gateway.text.moves() == 1);
}

TEST_CASE("silence: after two missing beats the first host with the next group has the text") {
  GatewayCase gateway;
  const AttemptId old = gateway.begin();
  gateway.bytes(old, group(0, 0, 5));
  const OpenHost next = gateway.fall_silent();
  CHECK(gateway.all<CloseHost>().empty());
  CHECK(next.emitted == EmittedTokens{{5}});
  gateway.accept(next.attempt);
  gateway.bytes(next.attempt, ": b\n\n");
  gateway.bytes(old, ": b\n\n");
  CHECK(gateway.actions.empty());
  CHECK(gateway.text.moves() == 0);
  SECTION("the new one") {
    gateway.bytes(next.attempt, group(0, 1, 6));
    CHECK(gateway.only<CloseHost>().attempt == old);
    CHECK(gateway.text.moves() == 1);
  }
  SECTION("the old one") {
    gateway.bytes(old, group(0, 1, 6));
    CHECK(gateway.only<CloseHost>().attempt == next.attempt);
    CHECK(gateway.text.moves() == 0);
  }
  CHECK(gateway.client == "data: 5\n\ndata: 6\n\n");
}

TEST_CASE("silence: a host that falls silent often and goes on uses up no moves") {
  GatewayCase gateway({.model = "m", .max_moves = 2});
  const AttemptId host = gateway.begin();
  for (std::uint32_t i = 0; i < 10; ++i) {
    gateway.bytes(host, group(0, i, 5));
    gateway.accept(gateway.fall_silent().attempt);
  }
  CHECK(gateway.text.moves() == 0);
  gateway.bytes(host, group(0, 10, 5));
  gateway.on(lost(host));
  CHECK(gateway.only<OpenHost>().cause == MoveCause::Lost);
}

TEST_CASE("silence: a successor whose host is late and has not answered is asked no more") {
  GatewayCase gateway({.model = "m"}, milliseconds(2200));
  gateway.bytes(gateway.begin(), group(0, 0, 5));
  const HostId old = gateway.opened.host;
  const OpenHost next = gateway.fall_silent();
  gateway.wait(milliseconds(100));  // 1150 ms after its report
  CHECK(gateway.actions.empty());   // no other host is ready
  const HostId third{3 - old.value - next.host.value};
  gateway.report(third);
  gateway.wait(milliseconds(100));
  CHECK(gateway.only<CloseHost>().attempt == next.attempt);
  CHECK(gateway.only<OpenHost>().host == third);
}

TEST_CASE("silence: a request without an answer leaves a late host only for a ready one") {
  GatewayCase gateway({.model = "m"}, seconds(2));
  gateway.on(RequestArrived{});
  const OpenHost first = gateway.opened;
  for (int i = 0; i < 12; ++i) gateway.wait(milliseconds(100));
  CHECK(gateway.opened.attempt == first.attempt);
  for (std::uint64_t i = 0; i < 3; ++i)
    if (HostId{i} != first.host) gateway.report(HostId{i});
  gateway.wait(milliseconds(100));
  CHECK(gateway.only<CloseHost>().attempt == first.attempt);
  CHECK(gateway.only<OpenHost>().cause == MoveCause::Silent);
}

TEST_CASE("text: a gateway that was stopped reads what has arrived before it leaves a host") {
  GatewayCase gateway;
  const AttemptId host = gateway.begin();
  for (int i = 0; i < 3; ++i) {
    gateway.wait(seconds(2));
    CHECK(gateway.actions.empty());
    CHECK(gateway.text.next_deadline() == gateway.now + milliseconds(50));
  }
  SECTION("bytes had arrived") {
    gateway.bytes(host, ": b\n\n");
    gateway.wait(milliseconds(1499));
    CHECK(gateway.actions.empty());
  }
  SECTION("the host is silent indeed") {
    gateway.wait(milliseconds(50));
    CHECK(gateway.only<OpenHost>().cause == MoveCause::Silent);
  }
}

TEST_CASE("text: a host that answers late or beats without end is left") {
  GatewayCase late;
  late.on(RequestArrived{});
  late.wait(seconds(5));
  late.wait(milliseconds(50));
  CHECK(late.only<OpenHost>().cause == MoveCause::Silent);
  GatewayCase endless({.model = "m", .silence = {.progress_timeout = seconds(10)}});
  const AttemptId host = endless.begin();
  for (int i = 0; i < 10; ++i) {
    endless.bytes(host, ": b\n\n");
    endless.wait(seconds(1));
  }
  endless.wait(milliseconds(50));
  CHECK(endless.only<OpenHost>().cause == MoveCause::Stalled);
}

/// A worker and the index outside it that is sent the ids of ended requests.
#include <signal.h>
#include <stdlib.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "common/random.hpp"
#include "ipc/control/client.hpp"
#include "tests/support/index_server.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

using Evicted = std::map<std::string, int>;

const std::string kCompleted = "req-00000000000a";
const std::string kCancelled = "req-00000000000b";
const std::string kRevoked = "req-00000000000c";
const std::string kFirst = "req-00000000000d";
const std::string kLast = "req-00000000000e";
const TenantSpec kStream{.tenant = "ann", .prompt = "Once upon a time", .max_tokens = 120};

TenantSpec request_of(const std::string& tenant, const std::string& id, std::uint32_t tokens) {
  return {.tenant = tenant, .max_tokens = tokens, .more = {"--request-id", id}};
}

bool has_received(const IndexServer& index, const std::string& id) {
  return index.wait([&](const IndexServer& s) { return s.evicted().contains(id); });
}

/// Submits a long request and cancels it after its first token; returns once it has ended.
void run_cancelled(const System& system, const std::string& tenant, const std::string& id) {
  auto broker = control::Client::connect(system.broker_socket()).value();
  const wire::LeaseAcquire ask{.tenant = {tenant}, .request_id = {mint_request_id()}};
  const auto reply = broker.call("lease.acquire", {.body = ask.to_json()}).value();
  const auto lease = wire::LeaseAcquired::from_json(reply.body).value();
  boost::asio::io_context io;
  std::string end;
  std::shared_ptr<control::Peer> peer;
  const auto note = [&](const std::string& method, const control::Payload& params) {
    if (method == wire::RequestCompleted::kMethod)
      end = wire::RequestCompleted::from_json(params.body).value().reason;
    else if (wire::TokenEmitted::from_json(params.body).value().position == 0)
      peer->call(wire::RequestCancel::kMethod.data(),
                 {wire::RequestCancel{.request_id = {id}}.to_json(), {}},
                 [](const auto& cancelled) { CHECK(cancelled); });
  };
  peer = control::Peer::create(
      control::connect_to(io, lease.address).value(),
      {.on_call = nullptr, .on_notification = note, .on_closed = [](const Error&) {}});
  peer->start();
  authenticate(*peer, lease);
  const wire::RequestSubmit request{.token = lease.token,
                                    .request_id = {id},
                                    .prompt = "Once upon a time",
                                    .max_emitted_tokens = 400,
                                    .ignore_eos = true};
  peer->call("request.submit", {request.to_json(), {}}, [](const auto& sent) { CHECK(sent); });
  while (end.empty()) REQUIRE(io.run_one_for(std::chrono::seconds(60)) > 0);
  CHECK(end == "Cancelled");
}

class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("index sync: completed, cancelled and revoked requests reach the index once each") {
  IndexServer index;
  index.add({kCompleted, kCancelled, kRevoked, kLast, "req-of-another"});
  System system({.worker_arguments = {"--slow-motion-us", "30", "--kv-index-url", index.url()}});
  for (const char* tenant : {"ann", "bob"}) system.admit(tenant);

  CHECK(system.start_tenant(request_of("ann", kCompleted, 10))->finish() == 0);
  REQUIRE(has_received(index, kCompleted));
  run_cancelled(system, "ann", kCancelled);
  REQUIRE(has_received(index, kCancelled));
  const auto bob = system.start_streaming(request_of("bob", kRevoked, 480), 5);
  REQUIRE_FALSE(index.evicted().contains(kRevoked));
  system.revoke_mid_request("bob");
  CHECK(bob->finish() != 0);
  REQUIRE(has_received(index, kRevoked));
  CHECK(system.start_tenant(request_of("ann", kLast, 10))->finish() == 0);
  REQUIRE(has_received(index, kLast));

  REQUIRE(system.worker().signal(SIGTERM));
  REQUIRE(eventually([&] { return system.worker().status().has_value(); }));
  CHECK(index.evicted() == Evicted{{kCompleted, 1}, {kCancelled, 1}, {kRevoked, 1}, {kLast, 1}});
  CHECK(index.ids() == std::set<std::string>{"req-of-another"});
  CHECK(system.worker_log().find("evict_incoming=4 evict_removed=4 evict_not_found=0 "
                                 "evict_dropped=0") != std::string::npos);
}

TEST_CASE("index sync: an index that never answers costs a stream no token") {
  IndexServer index;
  index.behave(IndexMode::Hold);
  const ScopedVariable variable("CONTEXTPILOT_INDEX_URL", index.url());
  System system;
  system.admit("ann");
  CHECK(system.start_tenant(request_of("ann", kFirst, 10))->finish() == 0);
  REQUIRE(index.wait([](const IndexServer& s) { return s.held() > 0; }));

  const auto ann = system.start_tenant(kStream);
  CHECK(ann->finish() == 0);
  CHECK(index.evicted().empty());
  ::unsetenv("CONTEXTPILOT_INDEX_URL");
  CHECK(ann->record().tokens == System::alone(kStream));

  index.behave(IndexMode::Answer);
  CHECK(has_received(index, kFirst));
}

}  // namespace leasehold::testing

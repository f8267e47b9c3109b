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
#include "ipc/control/transport/client.hpp"
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

/// A lease of the tenant that outlives its requests.
class Session {
 public:
  Session(const System& system, const std::string& tenant)
      : broker_(control::Client::connect(system.broker_socket()).value()) {
    lease_ = acquire(broker_, tenant);
    peer_ = connect_peer(io_, lease_,
                         [this](const std::string& method, const control::Payload& params) {
                           note(method, params);
                         });
  }

  /// Returns the reason of its end.
  std::string run(const std::string& id, std::uint32_t tokens,
                  const std::string& prompt = "Once upon a time") {
    const wire::RequestSubmit request{.token = lease_.token,
                                      .request_id = {id},
                                      .prompt = prompt,
                                      .max_emitted_tokens = tokens,
                                      .ignore_eos = true};
    end_.clear();
    peer_->call("request.submit", {request.to_json(), {}}, [](const auto& sent) { CHECK(sent); });
    while (end_.empty()) REQUIRE(io_.run_one_for(std::chrono::seconds(60)) > 0);
    return end_;
  }
  /// The same for a request that is cancelled after its first token.
  std::string run_cancelled(const std::string& id) {
    cancelled_ = id;
    return run(id, 400);
  }

 private:
  void note(const std::string& method, const control::Payload& params) {
    if (method == wire::RequestCompleted::kMethod) {
      end_ = wire::RequestCompleted::from_json(params.body).value().reason;
      return;
    }
    const auto token = wire::TokenEmitted::from_json(params.body).value();
    if (token.position > 0 || token.request.value != cancelled_) return;
    peer_->call(wire::RequestCancel::kMethod.data(),
                {wire::RequestCancel{.request_id = {cancelled_}}.to_json(), {}},
                [](const auto& cancelled) { CHECK(cancelled); });
  }

  control::Client broker_;
  wire::LeaseAcquired lease_;
  boost::asio::io_context io_;
  std::shared_ptr<control::Peer> peer_;
  std::string cancelled_;
  std::string end_;
};

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
  CHECK(Session(system, "ann").run_cancelled(kCancelled) == "Cancelled");
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

TEST_CASE("index sync: a completed request stays in the index while a block of it is cached") {
  IndexServer index;
  System system({.worker_arguments = {"--kv-index-url", index.url()}});
  system.admit("ann", {"--ttl-ms", "600000"});
  Session ann(system, "ann");
  CHECK(ann.run(kFirst, 60) == "MaxTokensReached");
  CHECK(ann.run(kLast, 60, "The dog ran") == "MaxTokensReached");
  // Less than a block, so nothing of it is cached, and its id leaves with its end: after those
  // before it, if they left with their ends, too.
  CHECK(ann.run(kCompleted, 2) == "MaxTokensReached");
  REQUIRE(has_received(index, kCompleted));
  CHECK(index.evicted() == Evicted{{kCompleted, 1}});

  system.admit("ann", {"--max-blocks", "1"});  // evicts all but the first block of the last text
  REQUIRE(has_received(index, kFirst));
  CHECK(index.evicted() == Evicted{{kCompleted, 1}, {kFirst, 1}});
  REQUIRE(system.brokerctl({"revoke", "--tenant", "ann"}) == 0);
  REQUIRE(has_received(index, kLast));
  REQUIRE(system.worker().signal(SIGTERM));
  REQUIRE(eventually([&] { return system.worker().status().has_value(); }));
  CHECK(index.evicted() == Evicted{{kFirst, 1}, {kCompleted, 1}, {kLast, 1}});
}

TEST_CASE("index sync: an index that never answers costs a stream no token") {
  IndexServer index;
  index.behave(IndexMode::Hold);
  const ScopedVariable variable("CONTEXTPILOT_INDEX_URL", index.url());
  System system({.tenants = {"ann"}});
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

TEST_CASE("index sync: an index that drops connections, answers 503 or restarts misses no id") {
  const std::string how = GENERATE("drops", "answers 503", "restarts");
  CAPTURE(how);
  IndexServer index;
  index.add({kFirst, kLast, "req-of-another"});
  System system({.worker_arguments = {"--kv-index-url", index.url()}, .tenants = {"ann"}});
  CHECK(system.start_tenant(request_of("ann", kFirst, 10))->finish() == 0);
  REQUIRE(has_received(index, kFirst));

  if (how == "restarts") index.stop();
  if (how == "drops") index.behave(IndexMode::Drop);
  if (how == "answers 503") index.behave(IndexMode::Unavailable);
  const auto ann = system.start_tenant(request_of("ann", kLast, 10));
  CHECK(ann->finish() == 0);
  CHECK(ann->record().tokens.size() == 10);
  REQUIRE(eventually(
      [&] { return system.worker_log().find("index not reached") != std::string::npos; }));
  CHECK(index.evicted() == Evicted{{kFirst, 1}});

  index.add({kFirst});  // the index returns with an old state
  if (how == "restarts") index.start();
  index.behave(IndexMode::Answer);
  REQUIRE(index.wait(
      [](const IndexServer& s) { return s.ids() == std::set<std::string>{"req-of-another"}; }));
  CHECK(index.evicted() == Evicted{{kFirst, 2}, {kLast, 1}});
}

TEST_CASE("index sync: the ids of a killed worker are removed by the next one, running or cached") {
  IndexServer index;
  index.add({kCompleted, kFirst, kLast, "req-of-another"});
  System system({.worker_arguments = {"--slow-motion-us", "30", "--kv-index-url", index.url()}});
  for (const char* tenant : {"ann", "bob"}) system.admit(tenant, {"--ttl-ms", "600000"});
  Session ann(system, "ann");
  CHECK(ann.run(kFirst, 60) == "MaxTokensReached");  // it stays cached
  CHECK(ann.run(kCompleted, 2) == "MaxTokensReached");
  REQUIRE(has_received(index, kCompleted));
  const auto bob = system.start_streaming(request_of("bob", kLast, 480), 5);
  const std::string left = system.worker_socket("w1") + ".index";
  REQUIRE(eventually([&] { return file_bytes(left).find("bob/" + kLast) != std::string::npos; }));
  CHECK(index.evicted() == Evicted{{kCompleted, 1}});

  REQUIRE(system.worker().signal(SIGKILL));
  CHECK(bob->finish() != 0);
  system.start_ready_worker("w1");
  REQUIRE(index.wait(
      [](const IndexServer& s) { return s.ids() == std::set<std::string>{"req-of-another"}; }));
  CHECK(index.evicted() == Evicted{{kCompleted, 1}, {kFirst, 1}, {kLast, 1}});
}

}  // namespace leasehold::testing

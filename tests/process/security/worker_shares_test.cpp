// What a tenant can make a worker hold is bounded, and the rest is left to others.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/checks/attack/attacks.hpp"
#include "tests/checks/attack/payloads.hpp"
#include "tests/support/system.hpp"
#include "worker/serve/connections.hpp"
#include "worker/serve/unread_output.hpp"

namespace leasehold::testing {
namespace {

using attack::HeldLease;
using attack::Outcome;
using attack::RawPeer;
using attack::Replies;

constexpr Duration kTimeout = std::chrono::minutes(2);
constexpr std::uint64_t kMiB = 1 << 20;

TimePoint deadline() {
  return SystemClock().now() + kTimeout;
}

/// What one tenant sends and receives.
struct Client {
  Client(const System& system, const std::string& tenant)
      : target{.broker_socket = system.broker_socket(),
               .worker_socket = system.worker_socket("w1"),
               .tenant = tenant} {}

  /// A connection that shows the token of a new lease first.
  RawPeer connect() {
    attack::Run run{.target = target, .random = random, .outcome = broker, .until = deadline()};
    auto held = attack::acquire(run);
    REQUIRE(held);
    leases.push_back(*std::move(held));
    return connect_again();
  }
  RawPeer connect_again() {
    RawPeer peer(target.worker_socket, worker);
    peer.queue(attack::authentication(leases.back().token));
    return peer;
  }
  /// A request under the newest lease.
  std::string request(std::uint32_t max_tokens, const std::string& prompt = {},
                      const wire::Json& sampling = {}) {
    return attack::submit_line({.token = leases.back().token,
                                .request_id = "r" + std::to_string(++requests),
                                .max_tokens = max_tokens,
                                .prompt = prompt,
                                .sampling = sampling});
  }
  /// Replies to requests: all but those to authentications.
  std::uint64_t answered() const {
    std::uint64_t count = 0;
    for (const auto& [kind, times] : worker.replies) {
      if (!kind.starts_with("ended ")) count += times;
    }
    return count;
  }

  attack::Target target;
  SeededRandom random{1};
  Outcome broker, worker;
  std::vector<HeldLease> leases;
  std::uint64_t requests = 0;
};

/// Private resident memory, without what is leased or shared. Source: proc(5), status.
std::uint64_t private_bytes(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) * 1024;
  }
  FAIL("process " << process << " has no RssAnon");
  return 0;
}

/// Moves what can be moved now, and waits a little.
void exchange(std::vector<RawPeer>& peers, Replies replies) {
  attack::pump(peers, replies, SystemClock().now() + std::chrono::milliseconds(5));
}

}  // namespace

TEST_CASE("security: 200 connections with ids of 1 MiB and unread streams cost bounded memory") {
  constexpr std::size_t kConnections = 200;
  // A tenant alone gets half of what all share; the rest are buffers, and a line that is parsed.
  constexpr std::uint64_t kShares =
      (TenantConnections::kMaxWaitingInputBytes + kMaxUnreadOutputBytes) / 2;
  constexpr std::uint64_t kMost = kShares + kConnections * (kMiB / 8);
  System system({.worker_arguments = {"--slow-motion-us", "100"}});
  for (const char* tenant : {"ann", "greedy"}) system.admit(tenant);
  const TenantSpec request{.tenant = "ann", .max_tokens = 300};
  const auto ann = system.start_streaming(request, 1);
  const std::uint64_t before = private_bytes(system.worker().pid());
  Client greedy(system, "greedy");
  std::vector<RawPeer> peers;
  peers.push_back(greedy.connect());
  while (peers.size() < kConnections) peers.push_back(greedy.connect_again());
  const std::string name((1 << 20) - 512, 'i');
  const auto long_id =
      attack::shared_text(attack::call_line(name, "request.cancel", wire::Json::object()));
  const wire::Json wordy = {
      {"temperature", 1.0}, {"seed", 1}, {"logprobs", true}, {"top_logprobs", 20}};
  for (RawPeer& peer : peers) {
    peer.queue(greedy.request(400, {}, wordy));
    for (int i = 0; i < 3; ++i) peer.queue(long_id);
  }

  std::uint64_t most = before;
  for (bool has_ended = false; !has_ended; has_ended = ann->read()) {
    exchange(peers, Replies::Ignore);
    most = std::max(most, private_bytes(system.worker().pid()));
  }

  CHECK(ann->finish() == 0);
  CHECK(system.undisturbed(request) == ann->record().tokens);
  INFO("before " << before / kMiB << " MiB, at most " << most / kMiB << " MiB");
  CHECK(most - before <= kMost);
  CHECK(greedy.worker.bytes_sent > 8 * kMiB);
}

TEST_CASE("security: a tenant's requests to parse delay another's by its own turn, not by all") {
  constexpr std::uint64_t kFlood = 50;  // requests that wait at any time
  constexpr std::uint64_t kTurns = 4;
  System system({.worker_arguments = {}});
  for (const char* tenant : {"ann", "greedy"}) system.admit(tenant);
  Client greedy(system, "greedy"), ann(system, "ann");
  std::vector<RawPeer> floods, anns;
  floods.push_back(greedy.connect());
  anns.push_back(ann.connect());
  const std::string costly(30'000, 'a');  // tokenized, then refused: longer than the context
  const auto flood_until = [&](const std::function<bool()>& is_done) {
    const TimePoint end = deadline();
    while (!is_done()) {
      REQUIRE(SystemClock().now() < end);
      while (greedy.requests < greedy.answered() + kFlood)
        floods[0].queue(greedy.request(1, costly));
      exchange(floods, Replies::Read);
      exchange(anns, Replies::Read);
    }
  };
  flood_until([&] { return greedy.answered() > kFlood; });

  const std::uint64_t before = greedy.answered();
  for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
    const std::uint64_t answered = ann.answered();
    anns[0].queue(ann.request(1));
    flood_until([&] { return ann.answered() > answered; });
  }

  // In one queue each of ann's requests would wait for the whole flood.
  CHECK(greedy.answered() - before < kTurns * kFlood / 2);
}

TEST_CASE("security: 20 leases full of waiting requests leave the queue open for another tenant") {
  constexpr std::uint64_t kLeases = 20, kWaiting = 60;
  System system({.worker_arguments = {"--slow-motion-us", "1000"}});
  for (const char* tenant : {"ann", "greedy"}) system.admit(tenant);
  Client greedy(system, "greedy"), ann(system, "ann");
  std::vector<RawPeer> peers, anns;
  for (std::uint64_t lease = 0; lease < kLeases; ++lease) {
    peers.push_back(greedy.connect());
    for (std::uint64_t i = 0; i < kWaiting; ++i) peers.back().queue(greedy.request(400));
  }
  const TimePoint end = deadline();
  while (greedy.answered() < kLeases * (kWaiting + 1)) {
    REQUIRE(SystemClock().now() < end);
    exchange(peers, Replies::Read);
  }
  anns.push_back(ann.connect());
  anns[0].queue(ann.request(1));
  while (ann.answered() < 2) {
    REQUIRE(SystemClock().now() < end);
    exchange(anns, Replies::Read);
    exchange(peers, Replies::Read);
  }

  CHECK(greedy.worker.replies.at("QueueFull") > 0);
  CHECK(ann.worker.replies.at("ok") == 2);
}

}  // namespace leasehold::testing

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/hex.hpp"
#include "ipc/control/messages/tenant.hpp"
#include "tests/checks/attack/attacks.hpp"
#include "tests/checks/attack/payloads.hpp"

namespace leasehold::attack {
namespace {

constexpr std::size_t kLongLineConnections = 48;
constexpr std::size_t kLongLinesOfOneConnection = 2;
constexpr std::size_t kRequestConnections = 4;
constexpr std::size_t kRequestsOfOneConnection = 64;
constexpr std::size_t kPromptBytes = 16 << 10;
constexpr std::size_t kLeases = 20;
constexpr std::size_t kWaitingOfOneLease = 60;
constexpr std::size_t kLongIdConnections = 8;
constexpr std::size_t kUnreadStreams = 16;
constexpr std::size_t kUnreadCalls = 2'000;
constexpr std::size_t kSilentConnections = 250;
constexpr std::size_t kStrangersWithLongLines = 120;
constexpr std::size_t kGuesses = 60;
constexpr std::uint32_t kLongestAnswer = 400;
constexpr std::size_t kHttpConnectionsOfEachKind = 4;
constexpr std::size_t kHttpBodyConnections = 60;

std::vector<RawPeer> connect(const std::string& path, std::size_t count, Outcome& outcome) {
  std::vector<RawPeer> peers;
  for (std::size_t i = 0; i < count; ++i) peers.emplace_back(path, outcome);
  return peers;
}

/// Opens connections to the worker that present the token first.
std::vector<RawPeer> connect_as_tenant(Run& run, const std::string& token, std::size_t count) {
  auto peers = connect(run.target.worker_socket, count, run.outcome);
  const SharedText first = shared_text(authentication(token));
  for (RawPeer& peer : peers) peer.queue(first);
  return peers;
}

/// A lease and connections under it. Without a lease there are no connections.
struct LeasedPeers {
  std::optional<HeldLease> lease;
  std::vector<RawPeer> peers;
};

/// Acquires a lease, opens connections under it, calls `fill(peer, index, token)` for each, and
/// sends what it has queued.
template <class Fill>
LeasedPeers attack_as_tenant(Run& run, std::size_t count, Replies replies, Fill fill) {
  LeasedPeers leased{.lease = acquire(run)};
  if (!leased.lease) return leased;
  const std::string& token = leased.lease->token;
  leased.peers = connect_as_tenant(run, token, count);
  for (std::size_t i = 0; i < count; ++i) fill(leased.peers[i], i, token);
  pump(leased.peers, replies, run.until);
  return leased;
}

/// A request with a random id.
std::string request(Run& run, Ask ask) {
  ask.request_id = fmt::format("r{:x}", run.random());
  return submit_line(ask);
}

/// Sends each bomb on a connection of its own, so that the worker may compile them at the same
/// time.
void send_bombs(Run& run, const std::vector<NamedSampling>& bombs) {
  attack_as_tenant(
      run, bombs.size(), Replies::Read,
      [&](RawPeer& peer, std::size_t i, const std::string& token) {
        peer.queue(request(
            run, {.token = token, .max_tokens = kLongestAnswer, .sampling = bombs[i].second}));
      });
}

}  // namespace

void send_long_lines(Run& run) {
  const SharedText line = shared_text(expensive_line());
  attack_as_tenant(run, kLongLineConnections, Replies::Read,
                   [&](RawPeer& peer, std::size_t, const std::string&) {
                     for (std::size_t i = 0; i < kLongLinesOfOneConnection; ++i) peer.queue(line);
                   });
}

void send_many_requests(Run& run) {
  std::string prompt;
  while (prompt.size() < kPromptBytes) prompt += "Once upon a time ";
  attack_as_tenant(run, kRequestConnections, Replies::Read,
                   [&](RawPeer& peer, std::size_t, const std::string& token) {
                     for (std::size_t i = 0; i < kRequestsOfOneConnection; ++i)
                       peer.queue(request(run, {.token = token, .prompt = prompt}));
                   });
}

void fill_many_leases(Run& run) {
  std::vector<HeldLease> leases;
  std::vector<RawPeer> peers;
  while (leases.size() < kLeases) {
    auto held = acquire(run);
    if (!held) break;
    auto added = connect_as_tenant(run, held->token, 1);
    for (std::size_t i = 0; i < kWaitingOfOneLease; ++i)
      added[0].queue(request(run, {.token = held->token, .max_tokens = kLongestAnswer}));
    peers.push_back(std::move(added[0]));
    leases.push_back(*std::move(held));
  }
  pump(peers, Replies::Read, run.until);
}

void send_long_ids(Run& run) {
  const std::string name(kLongLineBytes - 512, 'i');
  auto leased = attack_as_tenant(
      run, kLongIdConnections, Replies::Ignore,
      [&](RawPeer& peer, std::size_t i, const std::string& token) {
        const auto nothing = wire::Json::object();
        peer.queue(i % 3 == 0   ? call_line(name, wire::RequestCancel::kMethod, nothing)
                   : i % 3 == 1 ? call_line(1, name, nothing)
                                : submit_line({.token = token, .request_id = name}));
      });
  for (RawPeer& peer : leased.peers) peer.read();
}

void read_no_stream(Run& run) {
  const wire::Json wordy = {
      {"temperature", 1.0}, {"seed", 1}, {"logprobs", true}, {"top_logprobs", 20}};
  const SharedText cancel = shared_text(call_line(
      2, wire::RequestCancel::kMethod, wire::RequestCancel{.request_id = {"unknown"}}.to_json()));
  const auto leased = attack_as_tenant(
      run, kUnreadStreams, Replies::Ignore,
      [&](RawPeer& peer, std::size_t i, const std::string& token) {
        peer.queue(request(run, {.token = token, .max_tokens = kLongestAnswer, .sampling = wordy}));
        if (i % 2 == 0) return;
        for (std::size_t n = 0; n < kUnreadCalls; ++n) peer.queue(cancel);
      });
  if (leased.lease) sleep_until(run.until);
}

void send_grammar_bombs(Run& run) {
  static const auto bombs = grammar_bombs();
  send_bombs(run, bombs);
}

void send_schema_bombs(Run& run) {
  static const auto bombs = schema_bombs();
  send_bombs(run, bombs);
}

void forge_tokens(Run& run) {
  auto held = acquire(run);
  if (!held) return;
  std::vector<RawPeer> peers;
  for (const std::string& token : forged_tokens(held->token)) {
    peers.emplace_back(run.target.worker_socket, run.outcome);
    peers.back().queue(authentication(token));
    peers.push_back(std::move(connect_as_tenant(run, held->token, 1)[0]));
    peers.back().queue(request(run, {.token = token}));
  }
  pump(peers, Replies::Read, run.until);
}

void storm_worker(Run& run) {
  storm(run.target.worker_socket, run);
}

void send_long_lines_as_stranger(Run& run) {
  auto peers = connect(run.target.worker_socket, kStrangersWithLongLines, run.outcome);
  const SharedText lines[] = {shared_text(expensive_line()), shared_text(endless_line())};
  for (std::size_t i = 0; i < peers.size(); ++i) peers[i].queue(lines[i % std::size(lines)]);
  pump(peers, Replies::Read, run.until);
}

void stay_silent_at_worker(Run& run) {
  auto peers = connect(run.target.worker_socket, kSilentConnections, run.outcome);
  pump(peers, Replies::Read, run.until);
}

void guess_tokens(Run& run) {
  auto peers = connect(run.target.worker_socket, kGuesses, run.outcome);
  for (RawPeer& peer : peers) {
    std::string mac;
    for (int i = 0; i < 4; ++i) mac += fmt::format("{:016x}", run.random());
    peer.queue(authentication(fmt::format("v1:{}.1:honest-0:{}", run.random.below(64), mac)));
    peer.queue(request(run, {.token = "guess"}));
  }
  pump(peers, Replies::Read, run.until);
}

// --------------------------------------------------------------------------------- its HTTP server

void send_endless_framing(Run& run) {
  std::vector<RawPeer> peers;
  for (std::string& request : endless_requests(run.target.api_key)) {
    const SharedText text = shared_text(std::move(request));
    for (std::size_t i = 0; i < kHttpConnectionsOfEachKind; ++i) {
      peers.emplace_back(run.target.http_socket, run.outcome).queue(text);
    }
  }
  pump(peers, Replies::Read, run.until);
}

void send_expensive_bodies(Run& run) {
  const SharedText text = shared_text(expensive_request(run.target.api_key));
  std::vector<RawPeer> peers;
  for (std::size_t i = 0; i < kHttpBodyConnections; ++i)
    peers.emplace_back(run.target.http_socket, run.outcome).queue(text);
  pump(peers, Replies::Read, run.until);
}

}  // namespace leasehold::attack

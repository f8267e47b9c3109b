#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/hex.hpp"
#include "ipc/control/messages_tenant.hpp"
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

std::vector<RawPeer> connect(const std::string& path, std::size_t count, Outcome& outcome) {
  std::vector<RawPeer> peers;
  for (std::size_t i = 0; i < count; ++i) peers.emplace_back(path, outcome);
  return peers;
}

/// Connections to the worker that show the token first.
std::vector<RawPeer> connect_as_tenant(Run& run, const std::string& token, std::size_t count) {
  auto peers = connect(run.target.worker_socket, count, run.outcome);
  const SharedText first = shared_text(authentication(token));
  for (RawPeer& peer : peers) peer.queue(first);
  return peers;
}

std::string request_id(Run& run) {
  return fmt::format("r{:x}", run.random());
}

/// One connection for each bomb, so that the worker may compile them at once.
void send_bombs(Run& run, const std::vector<NamedSampling>& bombs) {
  auto held = acquire(run);
  if (!held) return;
  auto peers = connect_as_tenant(run, held->token, bombs.size());
  for (std::size_t i = 0; i < bombs.size(); ++i) {
    peers[i].queue(submit_line({.token = held->token,
                                .request_id = request_id(run),
                                .max_tokens = kLongestAnswer,
                                .sampling = bombs[i].second}));
  }
  pump(peers, Replies::Read, run.until);
}

}  // namespace

void send_long_lines(Run& run) {
  auto held = acquire(run);
  if (!held) return;
  auto peers = connect_as_tenant(run, held->token, kLongLineConnections);
  const SharedText line = shared_text(expensive_line());
  for (RawPeer& peer : peers) {
    for (std::size_t i = 0; i < kLongLinesOfOneConnection; ++i) peer.queue(line);
  }
  pump(peers, Replies::Read, run.until);
}

void send_many_requests(Run& run) {
  auto held = acquire(run);
  if (!held) return;
  auto peers = connect_as_tenant(run, held->token, kRequestConnections);
  std::string prompt;
  while (prompt.size() < kPromptBytes) prompt += "Once upon a time ";
  for (RawPeer& peer : peers) {
    for (std::size_t i = 0; i < kRequestsOfOneConnection; ++i) {
      peer.queue(submit_line(
          {.token = held->token, .request_id = request_id(run), .prompt = prompt, .sampling = {}}));
    }
  }
  pump(peers, Replies::Read, run.until);
}

void fill_many_leases(Run& run) {
  std::vector<HeldLease> leases;
  std::vector<RawPeer> peers;
  while (leases.size() < kLeases) {
    auto held = acquire(run);
    if (!held) break;
    auto added = connect_as_tenant(run, held->token, 1);
    for (std::size_t i = 0; i < kWaitingOfOneLease; ++i) {
      added[0].queue(submit_line({.token = held->token,
                                  .request_id = request_id(run),
                                  .max_tokens = kLongestAnswer,
                                  .prompt = {},
                                  .sampling = {}}));
    }
    peers.push_back(std::move(added[0]));
    leases.push_back(*std::move(held));
  }
  pump(peers, Replies::Read, run.until);
}

void send_long_ids(Run& run) {
  auto held = acquire(run);
  if (!held) return;
  auto peers = connect_as_tenant(run, held->token, kLongIdConnections);
  const std::string name(kLongLineBytes - 512, 'i');
  const SharedText lines[] = {
      shared_text(call_line(name, wire::RequestCancel::kMethod, wire::Json::object())),
      shared_text(call_line(1, name, wire::Json::object())),
      shared_text(
          submit_line({.token = held->token, .request_id = name, .prompt = {}, .sampling = {}}))};
  for (std::size_t i = 0; i < peers.size(); ++i) peers[i].queue(lines[i % std::size(lines)]);
  pump(peers, Replies::Ignore, run.until);
  for (RawPeer& peer : peers) peer.read();
}

void read_no_stream(Run& run) {
  auto held = acquire(run);
  if (!held) return;
  auto peers = connect_as_tenant(run, held->token, kUnreadStreams);
  const wire::Json wordy = {
      {"temperature", 1.0}, {"seed", 1}, {"logprobs", true}, {"top_logprobs", 20}};
  const SharedText cancel = shared_text(call_line(
      2, wire::RequestCancel::kMethod, wire::RequestCancel{.request_id = {"unknown"}}.to_json()));
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i].queue(submit_line({.token = held->token,
                                .request_id = request_id(run),
                                .max_tokens = kLongestAnswer,
                                .prompt = {},
                                .sampling = wordy}));
    if (i % 2 == 0) continue;
    for (std::size_t n = 0; n < kUnreadCalls; ++n) peers[i].queue(cancel);
  }
  pump(peers, Replies::Ignore, run.until);
  sleep_until(run.until);
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
    peers.back().queue(
        submit_line({.token = token, .request_id = request_id(run), .prompt = {}, .sampling = {}}));
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
    peer.queue(submit_line(
        {.token = "guess", .request_id = request_id(run), .prompt = {}, .sampling = {}}));
  }
  pump(peers, Replies::Read, run.until);
}

}  // namespace leasehold::attack

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ipc/control/messages_holder.hpp"
#include "tests/checks/attack/attacks.hpp"
#include "tests/checks/attack/payloads.hpp"

namespace leasehold::attack {
namespace {

constexpr std::size_t kCycles = 200;
constexpr std::size_t kBrokerUnreadConnections = 16;
constexpr std::size_t kBrokerUnreadCalls = 4'000;
constexpr std::size_t kBrokerLongLines = 100;
constexpr std::size_t kBrokerSilentConnections = 250;

/// Sends one text on many connections, without reading a reply.
void send_to_broker(Run& run, std::size_t connections, const std::string& text) {
  const SharedText shared = shared_text(text);
  std::vector<RawPeer> peers;
  for (std::size_t i = 0; i < connections; ++i) {
    peers.emplace_back(run.target.broker_socket, run.outcome);
    peers.back().queue(shared);
  }
  pump(peers, Replies::Ignore, run.until);
  sleep_until(run.until);
  for (RawPeer& peer : peers) peer.read();
}

}  // namespace

void acquire_and_release(Run& run) {
  RawPeer broker(run.target.broker_socket, run.outcome);
  for (std::size_t cycle = 0; cycle < kCycles && broker.is_open(); ++cycle) {
    const wire::LeaseAcquire ask{.tenant = {run.target.tenant}, .request_id = {mint_request_id()}};
    const auto reply = call(broker, call_line(1, ask.kMethod, ask.to_json()), run.until);
    if (!reply || !reply->is_object()) return;
    const auto lease = wire::LeaseAcquired::from_json(reply->value("result", wire::Json()));
    if (!lease) continue;
    const wire::LeaseRelease release{.lease = lease->lease, .request_id = {mint_request_id()}};
    if (!call(broker, call_line(2, release.kMethod, release.to_json()), run.until)) return;
  }
}

void forge_tokens_at_broker(Run& run) {
  auto held = acquire(run);
  if (!held) return;
  RawPeer other(run.target.broker_socket, run.outcome);
  for (const std::string& token : forged_tokens(held->token)) {
    const wire::LeaseHold hold{
        .lease = {.slot = 1, .generation = 1}, .token = token, .request_id = {mint_request_id()}};
    if (!call(other, call_line(1, hold.kMethod, hold.to_json()), run.until)) return;
  }
}

void read_no_answer_of_broker(Run& run) {
  const std::string question =
      call_line(std::string(100, 'i'), std::string(100, 'm'), wire::Json::object());
  std::string many;
  for (std::size_t i = 0; i < kBrokerUnreadCalls; ++i) many += question;
  send_to_broker(run, kBrokerUnreadConnections, many);
}

void storm_broker(Run& run) {
  storm(run.target.broker_socket, run);
}

void send_long_lines_to_broker(Run& run) {
  send_to_broker(run, kBrokerLongLines, expensive_line());
}

void stay_silent_at_broker(Run& run) {
  send_to_broker(run, kBrokerSilentConnections, {});
}

}  // namespace leasehold::attack

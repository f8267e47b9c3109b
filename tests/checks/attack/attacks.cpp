#include "tests/checks/attack/attacks.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ipc/control/messages_holder.hpp"
#include "tests/checks/attack/payloads.hpp"

namespace leasehold::attack {
namespace {

constexpr bool kTenant = true, kOtherUser = true, kHttp = true;
constexpr std::size_t kStormConnections = 16;  ///< At once.
constexpr std::size_t kStormRounds = 40;
constexpr Duration kStormPause = std::chrono::milliseconds(5);

constexpr Attack kAttacks[] = {
    {"long lines", kTenant, !kOtherUser, !kHttp, send_long_lines},
    {"many requests", kTenant, !kOtherUser, !kHttp, send_many_requests},
    {"many leases", kTenant, !kOtherUser, !kHttp, fill_many_leases},
    {"long ids", kTenant, !kOtherUser, !kHttp, send_long_ids},
    {"unread streams", kTenant, !kOtherUser, !kHttp, read_no_stream},
    {"grammar bombs", kTenant, !kOtherUser, !kHttp, send_grammar_bombs},
    {"schema bombs", kTenant, !kOtherUser, !kHttp, send_schema_bombs},
    {"forged tokens", kTenant, !kOtherUser, !kHttp, forge_tokens},
    {"framing without end", kTenant, !kOtherUser, kHttp, send_endless_framing},
    {"expensive bodies", kTenant, !kOtherUser, kHttp, send_expensive_bodies},
    {"storm on the worker", !kTenant, !kOtherUser, !kHttp, storm_worker},
    {"long lines of strangers", !kTenant, !kOtherUser, !kHttp, send_long_lines_as_stranger},
    {"silent connections", !kTenant, !kOtherUser, !kHttp, stay_silent_at_worker},
    {"guessed tokens", !kTenant, !kOtherUser, !kHttp, guess_tokens},
    {"acquire and release", kTenant, kOtherUser, !kHttp, acquire_and_release},
    {"forged tokens at the broker", kTenant, kOtherUser, !kHttp, forge_tokens_at_broker},
    {"unread answers of the broker", !kTenant, kOtherUser, !kHttp, read_no_answer_of_broker},
    {"storm on the broker", !kTenant, kOtherUser, !kHttp, storm_broker},
    {"long lines at the broker", !kTenant, kOtherUser, !kHttp, send_long_lines_to_broker},
    {"silent connections at the broker", !kTenant, kOtherUser, !kHttp, stay_silent_at_broker},
};

}  // namespace

std::span<const Attack> attacks() {
  return kAttacks;
}

std::vector<Attack> attacks_of(const Attacker& attacker, std::span<const std::string> without) {
  std::vector<Attack> possible;
  std::ranges::copy_if(kAttacks, std::back_inserter(possible), [&](const Attack& attack) {
    return attack.needs_tenant == attacker.is_tenant &&
           (attacker.has_own_user || !attack.needs_other_user) &&
           (attacker.has_http || !attack.needs_http) &&
           std::ranges::find(without, attack.name) == without.end();
  });
  return possible;
}

std::optional<HeldLease> acquire(Run& run) {
  const wire::LeaseAcquire ask{.tenant = {run.target.tenant}, .request_id = {mint_request_id()}};
  HeldLease held{.broker = RawPeer(run.target.broker_socket, run.outcome), .token = {}};
  const auto reply = call(held.broker, call_line(1, ask.kMethod, ask.to_json()), run.until);
  if (!reply || !reply->is_object()) return std::nullopt;
  const auto lease = wire::LeaseAcquired::from_json(reply->value("result", wire::Json()));
  if (!lease) return std::nullopt;
  held.token = lease->token;
  return held;
}

void storm(const std::string& path, Run& run) {
  const SharedText half = shared_text(R"({"jsonrpc":"2.0","id":1,"meth)");
  const SystemClock clock;
  for (std::size_t round = 0; round < kStormRounds && clock.now() < run.until; ++round) {
    std::vector<RawPeer> peers;
    for (std::size_t i = 0; i < kStormConnections; ++i) {
      peers.emplace_back(path, run.outcome);
      if (i % 2 == 0) peers.back().queue(half);
      peers.back().write();
    }
    sleep_until(clock.now() + kStormPause);
  }
}

}  // namespace leasehold::attack

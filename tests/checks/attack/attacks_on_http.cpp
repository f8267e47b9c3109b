#include "tests/checks/attack/attacks.hpp"
#include "tests/checks/attack/payloads.hpp"

namespace leasehold::attack {
namespace {

constexpr std::size_t kConnectionsOfEachKind = 4;
constexpr std::size_t kBodyConnections = 60;

}  // namespace

void send_endless_framing(Run& run) {
  std::vector<RawPeer> peers;
  for (std::string& request : endless_requests(run.target.api_key)) {
    const SharedText text = shared_text(std::move(request));
    for (std::size_t i = 0; i < kConnectionsOfEachKind; ++i) {
      peers.emplace_back(run.target.http_socket, run.outcome).queue(text);
    }
  }
  pump(peers, Replies::Read, run.until);
}

void send_expensive_bodies(Run& run) {
  const SharedText text = shared_text(expensive_request(run.target.api_key));
  std::vector<RawPeer> peers;
  for (std::size_t i = 0; i < kBodyConnections; ++i)
    peers.emplace_back(run.target.http_socket, run.outcome).queue(text);
  pump(peers, Replies::Read, run.until);
}

}  // namespace leasehold::attack

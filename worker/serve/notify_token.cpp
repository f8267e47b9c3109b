#include "worker/serve/notify_token.hpp"

#include <utility>

#include "ipc/control/messages/token_line.hpp"

namespace leasehold {

void notify_token(control::Peer& peer, const wire::TokenEmitted& token) {
  if (auto line = control::token_line(token)) return peer.notify_line(*std::move(line));
  peer.notify(std::string(wire::TokenEmitted::kMethod), {.body = token.to_json()});
}

}  // namespace leasehold

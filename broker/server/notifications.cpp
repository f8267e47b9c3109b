// Notifications to holders and the agent of a cell.
#include "broker/server/effects.hpp"

namespace leasehold {
namespace {

/// Does nothing if the connection has ended.
template <class Message>
void notify(const std::shared_ptr<control::Peer>& peer, const Message& message) {
  if (peer != nullptr) peer->notify(std::string(Message::kMethod), {.body = message.to_json()});
}

}  // namespace

void ServerEffects::perform(const effect::NotifyHolder& effect) {
  notify(dependencies_.find_peer(effect.holder), effect.revoked);
}

void ServerEffects::perform(const effect::NotifyDraining& effect) {
  notify(dependencies_.find_peer(effect.holder), effect.draining);
}

void ServerEffects::perform(const effect::NotifyAgent& effect) {
  notify(dependencies_.find_peer(effect.agent), effect.changed);
}

}  // namespace leasehold

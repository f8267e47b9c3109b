// A broker that lends memory of a card: performs effects on the product's AgentMemory, as its
// server does.
#include "broker/memory/agent_memory.hpp"
#include "tests/simulation/agent_client.hpp"
#include "tests/simulation/model_broker.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {

/// An agent that ends takes its objects with it before the core decides on that event.
void Broker::open_device() {
  if (deps_.card == nullptr) return;
  agent_client_ = std::make_unique<AgentClient>(
      deps_, *this,
      AgentClient::Handlers{.on_lost =
                                [this] {
                                  static_cast<AgentMemory&>(*device_).forget_all();
                                  receive(DeviceLost{"killed"});
                                },
                            .on_restarted = [this] { receive(DeviceRecovered{}); }});
  device_ = std::make_unique<AgentMemory>(*agent_client_);
}

void Broker::lend(const effect::SendGrant& effect) {
  device_->lend(effect.grant.extents, effect.grant.extent_size_bytes,
                [this, effect](auto fds) { send_lent(effect, std::move(fds)); });
}

/// A grant revoked while its memory was allocated is not sent.
void Broker::send_lent(const effect::SendGrant& effect, Result<std::vector<UniqueFd>> fds) {
  const wire::LeaseGrant& grant = effect.grant;
  const LeaseWord word = table.word(grant.lease.slot);
  const bool live = word.generation() == grant.lease.generation && word.state() == LeaseState::Live;
  if (fds && !live) {
    deps_.coverage.happened(CardEvent::RevokedWhileAllocating);
    fds = fail(Errc::LeaseRevoked, "lease was revoked before its memory was allocated");
  }
  if (!fds) {
    return receive(GrantAnswered{grant.lease, grant.extents, std::move(fds).error(), false});
  }
  Connection* const way = connection_to(effect.worker);
  const Worker* worker =
      way == nullptr ? nullptr : dynamic_cast<Worker*>(way->ends[Connection::kClient].process);
  for (std::size_t i = 0; worker != nullptr && i < fds->size(); ++i) {
    deps_.judge.lent({.extent = grant.extents[i],
                      .lease = grant.lease,
                      .worker = worker,
                      .memory = Card::memory_of((*fds)[i])});
  }
  send_grant(effect);
}

void Broker::clear(const std::vector<ExtentId>& extents) {
  device_->clear(extents, [this](ExtentsCleared cleared) {
    for (const auto& entry : cleared.entries) {
      if (entry.never_sent) deps_.coverage.happened(CardEvent::AbandonedWhileAllocating);
    }
    receive(std::move(cleared));
  });
}

void Broker::verify(const effect::VerifyExtents& effect) {
  device_->verify({effect.extents, effect.close_anyway},
                  [this](ExtentsVerified verified) { receive(std::move(verified)); });
}

void Broker::create_on_device(const effect::CreateRegion& effect) {
  device_->create_region(effect.region, effect.size_bytes, [this, lease = effect.lease](auto why) {
    receive(RegionLent{lease, std::move(why)});
  });
}

/// A reply leaves with its descriptor, or as an error.
Result<Answer> Broker::with_descriptor(const Result<Answer>& answer) const {
  if (!device_ || !answer) return answer;
  const auto* region = std::get_if<RegionDescriptor>(&answer->descriptors);
  if (region == nullptr) return answer;
  const UniqueFd fd = TRY(device_->region_fd(region->region, region->writable));
  return answer;
}

void Broker::saw_on_device(ExtentState from, ExtentState to) {
  if (to == ExtentState::Quarantined) deps_.coverage.happened(CardEvent::NotReturned);
  if (from != ExtentState::Held) return;
  const bool again = to == ExtentState::Owned;
  deps_.coverage.happened(again ? CardEvent::LentAgain : CardEvent::ReleasedAtExit);
}

}  // namespace leasehold::simulation

/// The device agent of the simulated machine: answers the messages of the real one
/// (ipc/control/messages/agent.hpp) from a simulated card.
#pragma once

#include <map>

#include "ipc/control/transport/peer.hpp"
#include "tests/simulation/card.hpp"
#include "tests/simulation/model_broker.hpp"

namespace leasehold::simulation {

class Agent final : public Process {
 public:
  explicit Agent(Dependencies deps) : Process(Role::Agent), deps_(deps) {}

  Result<control::Payload> answer(std::string_view method, const control::Json& params);

  /// The driver hangs: the agent answers no further call.
  void hang() { hangs_ = true; }
  bool accepts() const override { return !hangs_; }
  void on_death() override { deps_.card->agent_died(*this); }

 private:
  Result<control::Payload> allocate(const control::Json& params);
  Result<control::Payload> clear(std::size_t memory);
  control::Payload count() const;

  Dependencies deps_;
  std::map<std::uint64_t, std::size_t> objects_;  ///< By the id that the agent gave out.
  std::uint64_t next_object_ = 1;
  bool hangs_ = false;
};

}  // namespace leasehold::simulation

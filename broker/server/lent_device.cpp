#include "broker/server/lent_device.hpp"

#include <spdlog/spdlog.h>

#include "common/device_name.hpp"

namespace leasehold {

Result<std::unique_ptr<DeviceAgent>> start_agent(boost::asio::io_context& io,
                                                 const BrokerOptions& options) {
  if (options.device == "cpu") return nullptr;
  const bool automatic = options.device == "auto";
  const int ordinal = automatic ? 0 : card_number(options.device).value();  // options checked it
  auto agent = DeviceAgent::start(io, {.program = options.agent, .ordinal = ordinal});
  if (agent || !automatic) return agent;
  spdlog::info("no card is used, lending memory of the machine reason=\"{}\"",
               agent.error().detail);
  return nullptr;
}

LentDevice lent_device(const BrokerOptions& options, const DeviceAgent* agent) {
  if (agent == nullptr) return {};
  const std::string name = options.device == "auto" ? "cuda:0" : options.device;
  spdlog::info("lending memory of a card device={} uuid={} name=\"{}\" agent_pid={}", name,
               agent->card().uuid, agent->card().name, agent->pid());
  return {.name = name, .uuid = agent->card().uuid};
}

}  // namespace leasehold

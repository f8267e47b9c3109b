/// The device whose memory a broker lends, chosen once at start.
#pragma once

#include <memory>
#include <string>

#include "broker/memory/device_agent_link.hpp"
#include "broker/server/start/options.hpp"

namespace leasehold {

/// "cpu" for host memory, otherwise a card.
struct LentDevice {
  std::string name = "cpu";
  std::string uuid;
};

/// Starts the device agent; returns null for host memory. With "auto", if no card can be used, logs
/// why and returns null. Errors: those of DeviceAgentLink::start.
Result<std::unique_ptr<DeviceAgentLink>> start_agent(boost::asio::io_context& io,
                                                     const BrokerOptions& options);

/// The device that `start_agent` chose. Errors: BadRequest if --capacity exceeds the memory of the
/// card, or if a capacity or the sum of --capacity and --swap-capacity exceeds the memory of the
/// machine.
Result<LentDevice> lent_device(const BrokerOptions& options, const DeviceAgentLink* agent);

}  // namespace leasehold

/// The device whose memory a broker lends, chosen once at start.
#pragma once

#include <memory>
#include <string>

#include "broker/memory/device_agent_link.hpp"
#include "broker/server/options.hpp"

namespace leasehold {

/// "cpu" for host memory, otherwise a card.
struct LentDevice {
  std::string name = "cpu";
  std::string uuid;
};

/// Null for host memory. With "auto", a card that cannot be used is logged and host memory is lent.
/// Errors: those of DeviceAgentLink::start.
Result<std::unique_ptr<DeviceAgentLink>> start_agent(boost::asio::io_context& io,
                                                     const BrokerOptions& options);

/// The device that `start_agent` chose. Errors: BadRequest when --capacity exceeds the memory of
/// the card or of the machine; of the machine, also --weights-capacity and --swap-capacity.
Result<LentDevice> lent_device(const BrokerOptions& options, const DeviceAgentLink* agent);

}  // namespace leasehold

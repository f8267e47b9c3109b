/// Whose memory a broker lends, decided once at its start.
#pragma once

#include <memory>
#include <string>

#include "broker/memory/device_agent_link.hpp"
#include "broker/server/options.hpp"

namespace leasehold {

/// The machine's, or a card's.
struct LentDevice {
  std::string name = "cpu";
  std::string uuid;
};

/// None for memory of the machine; "auto" is satisfied with that, after a line in the log.
/// Errors: those of DeviceAgentLink::start.
Result<std::unique_ptr<DeviceAgentLink>> start_agent(boost::asio::io_context& io,
                                                 const BrokerOptions& options);

/// What `start_agent` led to. Errors: BadRequest when more is to be lent than the card has.
Result<LentDevice> lent_device(const BrokerOptions& options, const DeviceAgentLink* agent);

}  // namespace leasehold

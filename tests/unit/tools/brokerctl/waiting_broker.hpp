/// A FakeBroker that answers calls of `lease.wait`, whose clock runs while a call waits.
#pragma once

#include <chrono>

#include "ipc/control/messages/waits/lease_wait.hpp"
#include "tests/unit/tools/brokerctl/fake_broker.hpp"

namespace leasehold::brokerctl {

struct WaitingBroker : FakeBroker {
  Dependencies dependencies() {
    Dependencies with_time = FakeBroker::dependencies();
    with_time.call = [this, call = with_time.call](std::string_view method,
                                                   const wire::Json& params) {
      auto reply = call(method, params);
      if (reply && reply->contains("oldest_open"))  // the call waited for as long as it may
        clock.advance(std::chrono::milliseconds(params.at("timeout_ms").get<int>()));
      return reply;
    };
    return with_time;
  }
};

/// The reply to a call of `lease.wait`: leases that are over, and the others, the oldest first.
inline wire::Json waited(const std::vector<wire::LeaseView>& over,
                         const std::vector<wire::LeaseView>& open = {}) {
  wire::LeasesWaited reply{.items = over, .open = static_cast<std::uint32_t>(open.size())};
  if (!open.empty()) reply.oldest_open = open.front();
  return reply.to_json();
}

}  // namespace leasehold::brokerctl

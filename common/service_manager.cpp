#include "common/service_manager.hpp"

#include <systemd/sd-daemon.h>

namespace leasehold {

void notify_service_manager(const std::string& state) {
  (void)::sd_notify(0, state.c_str());  // the program serves even if the manager does not listen
}

}  // namespace leasehold

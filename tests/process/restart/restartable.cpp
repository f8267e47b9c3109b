#include "tests/process/restart/restartable.hpp"

#include <signal.h>

#include <stdexcept>

#include "common/process.hpp"

namespace leasehold::testing {
namespace {

SystemSpec spec_for(const std::string& state, FdStore& store, const std::string& fault,
                    std::vector<std::string> more) {
  std::vector<std::string> arguments{"--state-dir", state};
  if (more.empty()) more = {"--reattach-grace-ms", "60000"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return {.broker_arguments = std::move(arguments),
          .worker_arguments = {"--slow-motion-us", "100"},
          .broker_fault = fault,
          .store = &store};
}

void must(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace

Restartable::Restartable(const std::string& broker_fault, std::vector<std::string> more_of_broker)
    : system(spec_for(state.path(), store, broker_fault, std::move(more_of_broker))) {
  for (const char* tenant : {"ann", "bob", "cat"}) system.admit(tenant, {"--ttl-ms", "20000"});
}

void Restartable::restart_broker(const std::function<void()>& meanwhile) {
  must(system.broker().signal(SIGKILL).has_value(), "could not kill the broker");
  must(eventually([this] { return system.broker().status().has_value(); }),
       "the broker did not exit");
  meanwhile();
  must(system.start_broker(), "the restarted broker does not serve");
}

void Restartable::restart_when_dead() {
  must(eventually([this] { return has_exited(system.broker().pidfd()); }),
       "the broker did not reach its fault point");
  must(system.start_broker(), "the restarted broker does not serve");
}

}  // namespace leasehold::testing

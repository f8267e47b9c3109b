#include "tests/process/restart/restartable.hpp"

#include <signal.h>

#include <stdexcept>

#include "common/machine/process.hpp"

namespace leasehold::testing {
namespace {

std::vector<std::string> broker_arguments(const std::string& state, std::vector<std::string> more) {
  std::vector<std::string> arguments{"--state-dir", state};
  if (more.empty()) more = {"--reattach-grace-ms", "60000"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void must(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace

Restartable::Restartable(const std::string& broker_fault, std::vector<std::string> more_of_broker,
                         const std::string& worker_fault)
    : system({.broker_arguments = broker_arguments(state.path(), std::move(more_of_broker)),
              .worker_arguments = {"--slow-motion-us", "100"},
              .broker_fault = broker_fault,
              .worker_fault = worker_fault,
              .store = &store}) {
  for (const char* tenant : {"ann", "bob", "cat"})
    system.admit(tenant, {"--ttl-ms", std::to_string(kTtl.count())});
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

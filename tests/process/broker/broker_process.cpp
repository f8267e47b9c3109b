#include "tests/process/broker/broker_process.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace leasehold {

BrokerProcess::BrokerProcess(std::vector<std::string> more_arguments, FdStore* store)
    : programs_(program_dir(), folder_.path(), store), socket_(programs_.broker_socket()) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  arguments_ = {"--log-level", "error", "--socket-mode", "0666"};
  if (std::ranges::find(more_arguments, "--capacity") == more_arguments.end())
    arguments_.insert(arguments_.end(), {"--capacity", "64MiB"});
  if (more_arguments.empty()) more_arguments = {"--fence-timeout-ms", "3600000"};
  arguments_.insert(arguments_.end(), more_arguments.begin(), more_arguments.end());
  start();
}

void BrokerProcess::start() {
  child_.emplace(programs_.start_broker({.arguments = arguments_}).value());
  const bool serves = eventually([this] { return control::Client::connect(socket_).has_value(); });
  if (!serves) throw std::runtime_error("the broker does not serve");
}

void BrokerProcess::kill_and_restart(const std::function<void()>& between) {
  signal(SIGKILL);
  wait();
  between();
  start();
}

void BrokerProcess::admit(control::Client& client, const std::string& tenant) const {
  const wire::TenantAdmit admit{
      .tenant = {tenant}, .ttl_ms = 3'600'000, .request_id = next_request_id()};
  client.call("tenant.admit", {admit.to_json(), {}}).value();
}

Result<wire::LeaseAcquired> BrokerProcess::acquire(control::Client& client,
                                                   const std::string& tenant,
                                                   std::uint32_t blocks) const {
  const wire::LeaseAcquire acquire{
      .tenant = {tenant}, .blocks = blocks, .request_id = next_request_id()};
  const control::Payload reply = TRY(client.call("lease.acquire", {acquire.to_json(), {}}));
  return wire::LeaseAcquired::from_json(reply.body);
}

Result<control::Payload> BrokerProcess::revoke(control::Client& client, LeaseId lease) const {
  const wire::LeaseRevoke revoke{.lease = lease, .request_id = next_request_id()};
  return client.call("lease.revoke", {revoke.to_json(), {}});
}

wire::LeaseView BrokerProcess::view(control::Client& client, LeaseId lease) const {
  control::Json params{{"limit", 1}};
  if (lease.slot > 0) params["after"] = lease.slot - 1;
  const auto listed = client.call("lease.list", {std::move(params), {}}).value();
  const auto view = wire::LeaseView::from_json(listed.body.at("items").at(0)).value();
  if (view.lease != lease) throw std::runtime_error("no such lease");
  return view;
}

wire::StatusView BrokerProcess::status(control::Client& client) const {
  return wire::StatusView::from_json(client.call("status", {}).value().body).value();
}

int run_broker_once(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program_path("leasehold-broker"));
  Child child = Child::start({.argv = std::move(arguments), .log_path = "/dev/null"}).value();
  return testing::exit_status_of(child);
}

RequestId next_request_id() {
  static int number = 0;
  return {"test-" + std::to_string(::getpid()) + "-" + std::to_string(++number)};
}

}  // namespace leasehold

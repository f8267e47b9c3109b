#include "tools/brokerctl/describe/next_steps.hpp"

namespace leasehold::brokerctl {
namespace {

void add_owner(const wire::LeaseView& lease, std::vector<NextStep>& steps) {
  if (!lease.tenant.empty())
    steps.push_back({"brokerctl describe tenant " + lease.tenant, "Show its tenant"});
}

}  // namespace

std::vector<NextStep> next_steps(const wire::LeaseView& lease) {
  const std::string id = to_string(lease.lease);
  std::vector<NextStep> steps;
  switch (lease.state) {
    case LeaseState::Live:
      steps.push_back({"brokerctl revoke " + id + " --wait", "Revoke it now"});
      if (lease.scope == wire::LeaseScope::Tenant)
        steps.push_back({"brokerctl drain " + id, "Let its requests end, then end it"});
      break;
    case LeaseState::Revoked:
      steps.push_back({"brokerctl describe worker " + lease.worker,
                       "See why the worker has not proven that it stopped"});
      break;
    case LeaseState::Fenced:
    case LeaseState::Closed:
      if (lease.quarantined_extents > 0)
        steps.push_back({"brokerctl quarantine", "Show its memory whose teardown is unproven"});
      if (lease.replaced_by)
        steps.push_back({"brokerctl describe lease " + to_string(*lease.replaced_by),
                         "Show the lease that replaced it"});
      break;
  }
  steps.push_back({"brokerctl events --lease " + id, "Show all of its events"});
  add_owner(lease, steps);
  return steps;
}

std::vector<NextStep> next_steps(const wire::TenantView& tenant) {
  const std::string& name = tenant.policy.tenant.value;
  std::vector<NextStep> steps;
  if (tenant.draining) {
    steps.push_back({"brokerctl undrain --tenant " + name, "Give it new leases again"});
  } else {
    steps.push_back({"brokerctl drain --tenant " + name, "Let its requests end"});
  }
  if (tenant.leases_live > 0)
    steps.push_back({"brokerctl revoke --tenant " + name + " --wait", "Revoke its leases now"});
  steps.push_back({"brokerctl tenants admit " + name + " --max-blocks N", "Change a limit"});
  steps.push_back({"brokerctl keys create --tenant " + name, "Create a key for HTTP clients"});
  steps.push_back({"brokerctl events --tenant " + name, "Show all of its events"});
  return steps;
}

std::vector<NextStep> next_steps(const wire::WorkerView& worker) {
  const std::string& name = worker.worker;
  std::vector<NextStep> steps;
  if (worker.state == "gone" || worker.state == "lost") {
    const bool is_lost = worker.state == "lost";
    steps.push_back({"leasehold-worker --name " + name + " …",
                     is_lost ? "Start another one when its process has ended"
                             : "Start a new process of its name"});
  } else if (worker.state == "attached") {
    steps.push_back({"brokerctl get worker " + name + " --wait ready", "Wait for its weights"});
  } else if (worker.out_of_service) {
    steps.push_back({"brokerctl leases -o wide", "See the parts of its weights"});
  } else if (worker.drain == "asleep") {
    steps.push_back({"brokerctl worker wake " + name, "Restore its weights before a request does"});
  } else if (worker.drain == "waking") {
    steps.push_back({"brokerctl get worker " + name + " --wait ready", "Wait for its weights"});
  } else if (worker.drain == "serving") {
    steps.push_back({"brokerctl drain --worker " + name + " --wait",
                     "Let its requests end before you stop it"});
    steps.push_back(
        {"brokerctl workers replace " + name + " NEW", "Move its leases to another worker"});
  } else {
    steps.push_back({"brokerctl undrain --worker " + name, "Give it new leases again"});
  }
  steps.push_back({"brokerctl watch --steps", "Show the engine's steps"});
  return steps;
}

std::vector<NextStep> next_steps(const wire::KeyView& key) {
  return {{"brokerctl keys revoke " + key.key.value, "Revoke it; its requests end at once"},
          {"brokerctl describe tenant " + key.tenant.value, "Show its tenant"}};
}

std::vector<NextStep> next_steps(const wire::ExtentView& extent) {
  std::vector<NextStep> steps;
  if (extent.state == "Quarantined") {
    steps.push_back({"brokerctl quarantine release extent:" + std::to_string(extent.extent.value) +
                         " --reason TEXT",
                     "Free it, when you know that no process uses it"});
  }
  if (extent.lease)
    steps.push_back({"brokerctl describe lease " + to_string(*extent.lease), "Show its lease"});
  if (steps.empty()) steps.push_back({"brokerctl status", "Show how much memory is free"});
  return steps;
}

std::vector<NextStep> next_steps(const wire::AdapterView& adapter) {
  const std::string& name = adapter.adapter.value;
  std::vector<NextStep> steps;
  if (!adapter.removed) {
    steps.push_back(
        {"brokerctl adapters load " + name + " --worker W", "Load it before the first request"});
    steps.push_back({"brokerctl adapters remove " + name, "Forbid it to new requests"});
  }
  if (!adapter.leases.empty())
    steps.push_back({"brokerctl revoke --adapter " + name, "End its texts now"});
  if (adapter.tenant)
    steps.push_back({"brokerctl describe tenant " + adapter.tenant->value, "Show its tenant"});
  if (steps.empty()) steps.push_back({"brokerctl adapters", "Show all adapters"});
  return steps;
}

}  // namespace leasehold::brokerctl

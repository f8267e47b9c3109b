/// The commands that may come next for one thing, by its state. Pure.
#pragma once

#include <string>
#include <vector>

#include "ipc/control/messages.hpp"

namespace leasehold::brokerctl {

struct NextStep {
  std::string command;
  std::string purpose;
};

std::vector<NextStep> next_steps(const wire::LeaseView& lease);
std::vector<NextStep> next_steps(const wire::TenantView& tenant);
std::vector<NextStep> next_steps(const wire::WorkerView& worker);
std::vector<NextStep> next_steps(const wire::KeyView& key);
std::vector<NextStep> next_steps(const wire::ExtentView& extent);
std::vector<NextStep> next_steps(const wire::AdapterView& adapter);

}  // namespace leasehold::brokerctl

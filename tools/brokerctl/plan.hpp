/// `brokerctl plan`: whether a model and its tenants fit into a machine, and what to set.
#pragma once

#include <cstdint>

#include "kernels/model/capacity_plan.hpp"
#include "tools/brokerctl/arguments/arguments.hpp"

namespace leasehold::brokerctl {

struct PlanOptions {
  PlanRequest request;
  std::uint64_t memory_bytes = 0;  ///< Memory to plan for; 0: the available memory of this machine.
};

/// Returns the text to print. The exit code is 1 if the plan does not fit. Errors: those of
/// plan_capacity, and of reading this machine's memory.
Result<PrintText> plan(const PlanOptions& options);

}  // namespace leasehold::brokerctl

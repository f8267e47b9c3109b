/// The text of `brokerctl top`. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::brokerctl {

/// The broker's replies at one time.
struct TopSample {
  TimePoint at;
  wire::StatusView status;
  std::vector<wire::TenantView> tenants;
  std::vector<wire::WorkerView> workers;
  std::vector<wire::LeaseView> revoked;  ///< Revoked and not fenced yet.
  std::vector<wire::StepView> steps;     ///< The newest sampled step of each worker.
};

/// Tokens per second that the tenant was served between two samples; nothing without an earlier
/// sample of the same broker.
std::optional<double> tokens_per_second(const wire::TenantView& tenant, const TopSample& now,
                                        const TopSample* before);

/// Returns several lines. Tenants with the most tokens per second come first. `before` may be null.
std::string top_text(const TopSample& now, const TopSample* before);

/// The same as one JSON object.
wire::Json top_json(const TopSample& now, const TopSample* before);

}  // namespace leasehold::brokerctl

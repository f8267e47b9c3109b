/// The broker's replies as tables for people. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "ipc/control/messages.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {

/// Errors: MalformedMessage for another reply.
Result<cli::Table> status_table(const wire::Json& reply);
cli::Table tenants_table(const std::vector<wire::TenantView>& tenants);
cli::Table leases_table(const std::vector<wire::LeaseView>& leases);
/// The time in UTC, or `otherwise` if there is none.
std::string time_text(const std::optional<std::int64_t>& unix_ms, const char* otherwise);
cli::Table keys_table(const std::vector<wire::KeyView>& keys);
cli::Table prefixes_table(const std::vector<wire::LeaseView>& shared_leases);
cli::Table extents_table(const std::vector<wire::ExtentView>& extents);
cli::Table quarantine_table(const std::vector<wire::QuarantineView>& quarantined);
cli::Table operator_actions_table(const std::vector<wire::OperatorActionView>& actions);
cli::Table workers_table(const std::vector<wire::WorkerView>& workers);
/// The result of `worker replace`.
cli::Table replaced_table(const wire::WorkerView& view);

/// One event of `event.list` as one line: sequence number, seconds since boot, name, then all other
/// fields as logfmt, known or not.
std::string event_line(const wire::Json& event);

}  // namespace leasehold::brokerctl

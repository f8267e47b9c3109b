/// The broker's answers as tables. Every answer is input: what does not fit is MalformedMessage.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "ipc/control/messages.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {

/// The views of an answer `{"items": [...]}`. MalformedMessage when it is something else.
template <class View>
Result<std::vector<View>> items_of(const wire::Json& reply);

cli::Table status_table(const wire::StatusView& status);
cli::Table tenants_table(const std::vector<wire::TenantView>& tenants);
cli::Table leases_table(const std::vector<wire::LeaseView>& leases);
cli::Table extents_table(const std::vector<wire::ExtentView>& extents);
cli::Table quarantine_table(const std::vector<wire::QuarantineView>& quarantined);
cli::Table operator_actions_table(const std::vector<wire::OperatorActionView>& actions);
cli::Table workers_table(const std::vector<wire::WorkerView>& workers);

/// One event of `event.list` in one line: sequence, seconds since boot, name, then the rest as
/// logfmt. Shows fields it does not know as well.
std::string event_line(const wire::Json& event);

}  // namespace leasehold::brokerctl

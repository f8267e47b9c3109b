/// The audit of a journal, read back for people.
#pragma once

#include <vector>

#include "broker/journal/database.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::journal {

/// Newest first. Errors: those of Database. Rows that wait for room on the disk are not there yet.
Result<std::vector<wire::OperatorActionView>> load_newest_operator_actions(Database& database,
                                                                           std::size_t at_most);

}  // namespace leasehold::journal

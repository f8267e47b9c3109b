/// Reads the operator actions of a journal.
#pragma once

#include <vector>

#include "broker/journal/database.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::journal {

/// Newest first, without rows that still wait for disk space. Errors: those of Database.
Result<std::vector<wire::OperatorActionView>> load_newest_operator_actions(Database& database,
                                                                           std::size_t at_most);

}  // namespace leasehold::journal

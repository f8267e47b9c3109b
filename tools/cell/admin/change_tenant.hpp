/// Commits a change of a tenant, and waits for it. Internal to the commands.
#pragma once

#include <functional>

#include "tools/cell/admin/change.hpp"
#include "tools/cell/admin/change_wait.hpp"

namespace leasehold::cell {

/// The transaction of a change, for the tenant as it is.
using MakeChange = std::function<Result<etcd::Transaction>(const TenantView&)>;

/// Commits what `make` returns, until its comparisons hold. Errors: those of `make`; TimedOut when
/// hosts change the parts each time; then nothing was changed.
Result<TenantChange> change_tenant(const Calls& calls, const TenantId& tenant,
                                   const MakeChange& make);

/// An answer of one row: the name of what was changed.
Answer name_answer(const char* title, const std::string& field, const std::string& name);
/// Waits, if the user asked for it, and adds the hosts to the answer.
Result<Answer> finish(const Calls& calls, Answer answer, const TenantChange& change, Wait wait);

}  // namespace leasehold::cell

/// Changes the policy of a tenant.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Creates the tenant or replaces its policy, with a reserve that memory can cover. The row is
/// journaled with the decision. Errors: those of `tenant.admit`; nothing has changed then.
Result<Tenant*> put_policy(Decision& decision, const wire::TenantPolicy& policy);

}  // namespace leasehold

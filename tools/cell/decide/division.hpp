/// Divides a tenant's limits among the hosts that want some. Pure.
#pragma once

#include <vector>

#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {

/// What one host has and could use.
struct Claim {
  Share held;
  Share demand;
};

/// What each host should have, in the order of `claims`: as with the workers of one broker. A
/// single host gets the whole limit. Several hosts get the requests that they demand; if these are
/// more than the limit, the greatest shares are cut to one size. Blocks and tokens follow the
/// requests. Of the rest, hosts keep what they hold. A host gets what a request needs at least,
/// which is one of each limited amount, or nothing. The sum is at most `limits`.
std::vector<Share> divide(const Share& limits, const std::vector<Claim>& claims);

}  // namespace leasehold::cell

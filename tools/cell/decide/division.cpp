#include "tools/cell/decide/division.hpp"

#include <algorithm>
#include <numeric>

namespace leasehold::cell {
namespace {

using Amounts = std::vector<std::uint32_t>;

/// Gives the smallest demands first, so that each remaining host can get an equal part of the rest.
Amounts divide_amount(std::uint32_t limit, const Amounts& held, const Amounts& demand) {
  Amounts order(demand.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return demand[i]; });
  Amounts given(demand.size());
  std::uint32_t left = limit;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto sharers = static_cast<std::uint32_t>(order.size() - i);
    // Rounded up, so that a limit below the number of hosts is not lost; later hosts get less.
    const std::uint32_t equal = left / sharers + (left % sharers > 0 ? 1 : 0);
    given[order[i]] = std::min(demand[order[i]], equal);
    left -= given[order[i]];
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::uint32_t kept = std::min(left, held[i] > given[i] ? held[i] - given[i] : 0);
    given[i] += kept;
    left -= kept;
  }
  return given;
}

}  // namespace

std::vector<Share> divide(const Share& limits, const std::vector<Claim>& claims) {
  if (claims.size() == 1) return {limits};
  std::vector<Share> shares(claims.size());
  for (const auto amount :
       {&Share::concurrent, &Share::blocks, &Share::reserved, &Share::tokens_per_minute}) {
    Amounts held;
    Amounts demand;
    for (const Claim& claim : claims) {
      held.push_back(claim.held.*amount);
      demand.push_back(claim.demand.*amount);
    }
    const Amounts given = divide_amount(limits.*amount, held, demand);
    for (std::size_t i = 0; i < claims.size(); ++i) shares[i].*amount = given[i];
  }
  return shares;
}

}  // namespace leasehold::cell

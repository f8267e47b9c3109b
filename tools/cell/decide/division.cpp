#include "tools/cell/decide/division.hpp"

#include <algorithm>
#include <numeric>

namespace leasehold::cell {
namespace {

using Amounts = std::vector<std::uint32_t>;

/// Gives the smallest demands first, so that each remaining host can get an equal part of the rest.
Amounts divide_requests(std::uint32_t limit, const Amounts& demand) {
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
  return given;
}

/// In proportion to the requests: a host that can run none needs nothing else. What rounding leaves
/// goes to the first hosts that can use it.
Amounts divide_like(std::uint32_t limit, const Amounts& requests, const Amounts& demand) {
  const auto all = std::accumulate(requests.begin(), requests.end(), std::uint64_t{0});
  Amounts given(demand.size());
  std::uint32_t left = limit;
  for (std::size_t i = 0; i < demand.size() && all > 0; ++i) {
    const auto due = static_cast<std::uint32_t>(std::uint64_t{limit} * requests[i] / all);
    given[i] = std::min(demand[i], due);
    left -= given[i];
  }
  for (std::size_t i = 0; i < demand.size(); ++i) {
    const std::uint32_t more = requests[i] > 0 ? std::min(left, demand[i] - given[i]) : 0;
    given[i] += more;
    left -= more;
  }
  return given;
}

void keep_held(std::uint32_t limit, const Amounts& held, Amounts& given) {
  std::uint32_t left = limit - std::accumulate(given.begin(), given.end(), 0u);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::uint32_t kept = std::min(left, held[i] > given[i] ? held[i] - given[i] : 0);
    given[i] += kept;
    left -= kept;
  }
}

/// One amount of each host.
Amounts amounts(const std::vector<Claim>& claims, Share Claim::* of,
                std::uint32_t Share::* amount) {
  Amounts all;
  for (const Claim& claim : claims) all.push_back(claim.*of.*amount);
  return all;
}

/// Each request needs a block and a token, where these are limited.
std::uint32_t most_requests(const Share& limits) {
  std::uint32_t most = limits.concurrent;
  for (const std::uint32_t limit : {limits.blocks, limits.tokens_per_minute})
    if (limit > 0) most = std::min(most, limit);
  return most;
}

/// A host cannot run a request under such a share.
bool lacks_some(const Share& share, const Share& limits) {
  return share.concurrent == 0 || (share.blocks == 0 && limits.blocks > 0) ||
         (share.tokens_per_minute == 0 && limits.tokens_per_minute > 0);
}

}  // namespace

std::vector<Share> divide(const Share& limits, const std::vector<Claim>& claims) {
  if (claims.size() == 1) return {limits};
  std::vector<Share> shares(claims.size());
  const Amounts requests =
      divide_requests(most_requests(limits), amounts(claims, &Claim::demand, &Share::concurrent));
  for (const auto amount :
       {&Share::concurrent, &Share::blocks, &Share::reserved, &Share::tokens_per_minute}) {
    Amounts given =
        amount == &Share::concurrent
            ? requests
            : divide_like(limits.*amount, requests, amounts(claims, &Claim::demand, amount));
    keep_held(limits.*amount, amounts(claims, &Claim::held, amount), given);
    for (std::size_t i = 0; i < claims.size(); ++i) shares[i].*amount = given[i];
  }
  for (Share& share : shares)
    if (lacks_some(share, limits)) share = {};
  return shares;
}

}  // namespace leasehold::cell

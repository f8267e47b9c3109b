/// A lease as the scheduler knows it: its tenant, its quota, its blocks and its waiting requests.
#pragma once

#include <cstdint>
#include <deque>

#include "worker/kv/block_pool.hpp"
#include "worker/schedule/request.hpp"

namespace leasehold {

struct TenancyConfig {
  LeaseId lease;
  TenantId tenant;
  std::uint32_t max_concurrent = 1;
  std::uint32_t max_blocks = 0;
};

struct Tenancy {
  TenancyConfig config;
  BlockPool pool;
  std::deque<PromptRequest> waiting;
  std::uint32_t running = 0;
  bool growth_denied = false;       ///< The broker refused the last GrowthRequest.
  std::uint32_t blocks_wanted = 0;  ///< For the next GrowthRequest.
};

}  // namespace leasehold

/// Leases and running sequences for tests of a scheduler's parts, without a scheduler.
#pragma once

#include <catch2/catch.hpp>
#include <numeric>
#include <string>

#include "worker/schedule/memory/kv_allocator.hpp"
#include "worker/schedule/running_sequences.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold::testing {

struct PartsFixture {
  static constexpr std::uint32_t kBlock = 16;

  /// Adds a lease of the tenant "t1", "t2", …
  Tenancy& lease(std::uint32_t slot, std::uint32_t blocks, std::uint32_t max_blocks = 100) {
    const LeaseId id{slot, 1};
    const TenantId tenant{"t" + std::to_string(slot)};
    tenancies.set_quota({.tenant = tenant, .max_concurrent = 8, .max_blocks = max_blocks});
    tenancies.add({.lease = id, .tenant = tenant});
    if (blocks > 0) tenancies.at(id).pool.add_extent(ExtentId{slot}, blocks);
    return tenancies.at(id);
  }

  /// A request of `tokens` tokens; each call makes another text.
  PromptRequest request(const Tenancy& tenancy, const std::string& name, std::uint32_t tokens) {
    std::vector<TokenId> prompt(tokens);
    std::iota(prompt.begin(), prompt.end(), static_cast<TokenId>(1'000 * ++arrivals_));
    return {.tenant = tenancy.tenant,
            .lease = tenancy.lease,
            .engine_request_id = {name},
            .prompt = std::move(prompt),
            .max_emitted_tokens = 8,
            .arrival = arrivals_};
  }

  /// A running sequence whose first `committed` positions are in the lease's blocks.
  Sequence& run(Tenancy& tenancy, const std::string& name, std::uint32_t tokens,
                std::uint32_t committed) {
    auto sequence = std::make_unique<Sequence>(request(tenancy, name, tokens), kBlock);
    sequence->stop_slot = static_cast<std::uint32_t>(running.size());
    REQUIRE(sequence->blocks.reserve(committed, tenancy.pool));
    if (committed > 0) sequence->blocks.commit(committed);
    ++tenancy.running;
    running.add(std::move(sequence));
    return *running.all().back();
  }

  /// Ends a sequence whose full blocks stay cached.
  void end_cached(Sequence& sequence) {
    Tenancy& tenancy = tenancies.at(sequence.request.lease);
    sequence.blocks.cache_all({&tenancy.tenant, sequence.tokens}, tenancy.prefixes);
    kv.keep_user(tenancy.prefixes, sequence.blocks.cached(), sequence.request.engine_request_id);
    sequence.blocks.free(tenancy.pool, tenancy.prefixes);
    --tenancy.running;
    (void)running.remove(sequence);
  }

  SchedulerLimits limits{.max_context = 256, .record_blocks = 1};
  Tenancies tenancies{kBlock};
  RunningSequences running;
  KvAllocator kv{limits, tenancies};

 private:
  std::uint64_t arrivals_ = 0;
};

}  // namespace leasehold::testing

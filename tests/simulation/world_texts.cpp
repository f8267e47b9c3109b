// Each text ends, once nothing fails any more.
#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/world.hpp"

namespace leasehold::simulation {
namespace {

constexpr int kFinishRounds = 180;     // a load waits for memory for a minute, and may be repeated
constexpr int kRoundsUntilLoaded = 3;  // then no load of an earlier file is under way
constexpr int kRoundsOfText = 400;
constexpr std::uint32_t kMaxBlocks = 48;
constexpr Duration kRetryInterval = std::chrono::seconds(1);

}  // namespace

void World::restart_dead_processes() {
  if (broker().is_dead()) restart_broker();
  for (std::size_t index = 0; index < kTenants; ++index) {
    if (tenants_[index]->is_dead()) spawn_tenant(index);
  }
  for (std::size_t index = 0; index < kWorkers; ++index) {
    if (workers_[index]->is_dead()) spawn_worker(index);
  }
}

/// A broker that died before its journal was written knows no tenants.
void World::admit_all() {
  for (std::size_t index = 0; index < kTenants; ++index) {
    if (cell_agent_.is_of_cell(kTenantNames[index])) continue;
    broker().call(
        wire::TenantAdmit{.tenant = {std::string(kTenantNames[index])}, .max_blocks = kMaxBlocks});
  }
}

/// Does what the event worker_untrusted asks of operators. A starting worker ends by itself.
void World::end_untrusted_workers() {
  for (const auto& [id, worker] : broker().state.workers.all()) {
    if (!worker.untrusted) continue;
    for (Worker* process : workers_) {
      if (process->attachment == id) process->kill_pending = !process->is_dead();
    }
  }
}

void World::finish_texts() {
  restart_dead_processes();
  admit_all();
  if (persistent_.has_adapters) adapter_operator_.finish();
  std::array<std::uint64_t, kTenants> texts{};
  std::ranges::transform(tenants_, texts.begin(), &Tenant::text_id);
  for (int round = 0; round < kFinishRounds; ++round) {
    persistent_.is_finishing = round >= kRoundsUntilLoaded;
    restart_dead_processes();
    cell_agent_.serve_without_end();
    settle();
    release_all_quarantined();
    end_untrusted_workers();
    for (const Worker* worker : workers_)
      if (persistent_.has_adapters) adapter_operator_.make_room(worker->worker_name());
    bool are_finished = true;
    for (std::size_t tenant = 0; tenant < kTenants; ++tenant) {
      if (tenants_[tenant]->text_id() != texts[tenant]) continue;
      are_finished = false;
      if (tenants_[tenant]->is_running()) tenants_[tenant]->continue_text();
      run_until_idle(kRoundsOfText);
    }
    if (are_finished) return judge_.texts_are_whole();
    machine_.clock.advance(kRetryInterval);
  }
  for (std::size_t tenant = 0; tenant < kTenants; ++tenant) {
    if (tenants_[tenant]->text_id() == texts[tenant])
      violated(
          fmt::format("text {} of tenant {} does not end", texts[tenant], kTenantNames[tenant]));
  }
}

}  // namespace leasehold::simulation

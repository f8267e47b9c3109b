#include "broker/server/start/startup_state.hpp"

#include <spdlog/spdlog.h>

#include <ctime>

#include "broker/journal/state_file.hpp"
#include "broker/server/start/token_key_file.hpp"
#include "broker/supervise/exit_observer.hpp"
#include "broker/supervise/kept_slots.hpp"

namespace leasehold {
namespace {

BrokerConfig config_of(const BrokerOptions& options, const LentDevice& device,
                       const TokenKey& key) {
  return {.slot_count = options.slots,
          .worker_users = static_cast<std::uint32_t>(options.worker_uids.size()),
          .capacity_bytes = options.capacity_bytes,
          .swap_capacity_bytes = options.swap_capacity_bytes,
          .max_extents = options.max_extents,
          .weights_capacity_bytes = options.weights_capacity_bytes,
          .max_engine_leases = options.max_engine_leases,
          .max_shared_blocks = options.max_shared_blocks,
          .max_shared_adapter_bytes = options.max_shared_adapter_bytes,
          .timeouts = {.fence = options.fence_timeout,
                       .reclaim_grace = options.reclaim_grace,
                       .adopt_grace = options.adopt_grace,
                       .worker = options.worker_timeout},
          .token_key = key,
          .lends_spill = !options.spill_dir.empty(),
          .device = device.name,
          .device_uuid = device.uuid};
}

/// Starts with an empty state: without a state directory nothing is known about an earlier broker.
Result<StartupState> start_without_state_dir(const BrokerOptions& options,
                                             const LentDevice& device) {
  const BrokerConfig config = config_of(options, device, random_token_key());
  LeaseTable table = TRY(LeaseTable::create(options.slots));
  return StartupState{.lock = {},
                      .journal = std::make_unique<journal::NullJournal>(),
                      .recovered = {.state = State(config), .words = {}, .effects = {}},
                      .table = std::move(table),
                      .memory = {},
                      .kept_workers = {},
                      .kept_spills = {}};
}

/// Takes the previous broker's table, if it belongs to this boot and is valid.
std::optional<LeaseTable> take_table(const journal::Image& image, const std::string& boot,
                                     KeptDescriptors& kept) {
  UniqueFd fd = kept.take(kept::kTable);
  if (!fd || image.boot_id != boot) return std::nullopt;
  auto table = LeaseTable::adopt(std::move(fd));
  if (table) return *std::move(table);
  spdlog::warn("could not use the kept lease table, creating a new one detail=\"{}\"",
               table.error().detail);
  return std::nullopt;
}

bool is_kept(const KeptDescriptors& kept, AttachmentId worker) {
  return kept.has(kept::segment(worker.value)) && kept.has(kept::wakeup_fd(worker.value)) &&
         kept.has(kept::pidfd(worker.value));
}

std::set<RegionId> take_regions(const journal::Image& image, KeptDescriptors& kept,
                                MemoryStore& memory) {
  std::set<RegionId> regions;
  for (const auto& [id, row] : image.regions) {
    UniqueFd fd = kept.take(kept::weights(id.value));
    if (!fd) continue;
    if (const auto taken = memory.restore_region(id, std::move(fd), row.size_bytes)) {
      regions.insert(id);
    } else {
      spdlog::warn("could not use kept weights region={} detail=\"{}\"", id.value,
                   taken.error().detail);
    }
  }
  return regions;
}

std::map<AttachmentId, UniqueFd> take_spills(const std::set<AttachmentId>& workers,
                                             KeptDescriptors& kept) {
  std::map<AttachmentId, UniqueFd> spills;
  for (const AttachmentId worker : workers)
    if (UniqueFd fd = kept.take(kept::spill(worker.value))) spills.emplace(worker, std::move(fd));
  return spills;
}

bool has_ended(const ProcessIdentity& process) {
  const auto pidfd = open_pidfd(process);
  return !pidfd && pidfd.error().code == Errc::ConnectionLost;
}

void find_exited_processes(const journal::Image& image, Facts& facts) {
  for (const auto& [id, process] : worker_processes(image)) {
    if (const auto exit = ExitObserver::observe(id, process)) facts.exited_workers.push_back(*exit);
  }
  for (const ProcessIdentity& holder : holder_processes(image)) {
    if (has_ended(holder)) facts.exited_holders.insert(holder);
  }
}

void log_startup(const journal::Image& image, const Facts& facts) {
  spdlog::info(
      "loaded the journal tenants={} workers={} workers_exited={} leases={} "
      "extents={} regions={} table_kept={} same_boot={}",
      image.tenants.size(), image.workers.size(), facts.exited_workers.size(), image.leases.size(),
      image.extents.size(), image.regions.size(), facts.table.has_value(),
      image.boot_id == facts.boot_id);
}

void warn_of_weights_over_capacity(const WeightsStore& weights) {
  if (weights.excess_bytes() == 0) return;
  spdlog::warn(
      "weights from before the restart hold more than --weights-capacity; no others are loaded "
      "until enough are gone: stop a worker, or raise weights-capacity and restart the broker "
      "held_bytes={} weights_capacity_bytes={}",
      weights.held_bytes(), weights.capacity_bytes());
}

void log_audit_key(const journal::AuditSigner& signer) {
  if (!signer.is_replacement()) return;
  spdlog::warn(
      "the file audit-key of the state directory was lost: audit heads are signed with a new key, "
      "which no earlier key vouches for; give its public key to your auditors key={}",
      signer.newest().key);
}

void log_audit(const journal::AuditLog& audit) {
  if (audit.head_missing_after() != 0) {
    spdlog::warn(
        "the file audit_head of the state directory was missing: audit records after {} may have "
        "been cut off",
        audit.head_missing_after());
  }
  if (audit.clock_ahead_ms() == 0) return;
  spdlog::warn(
      "the clock is far ahead of the newest audit record, so no record is removed by its age for "
      "that; if the clock is right, start once with --audit-trust-clock clock_ahead_s={}",
      audit.clock_ahead_ms() / 1000);
}

}  // namespace

Result<StartupState> load_startup_state(const BrokerOptions& options, const LentDevice& device,
                                        KeptDescriptors& kept, TimePoint now) {
  if (options.state_dir.empty()) return start_without_state_dir(options, device);
  UniqueFd lock = TRY(journal::lock_state_dir(options.state_dir));
  auto journal = TRY(
      journal::SqliteJournal::open(options.state_dir, {.records = options.audit_records,
                                                       .days = options.audit_days,
                                                       .trust_clock = options.audit_trust_clock}));
  log_audit(journal->audit());
  log_audit_key(journal->signer());
  const journal::Image image = TRY(journal->load(std::time(nullptr)));
  if (journal->was_restored()) {
    spdlog::warn(
        "the state directory was restored from a copy: ids continue above all that can have "
        "been issued since generation={} attachment={}",
        image.reserved.generations, image.reserved.attachments);
  }
  const bool is_first_start = image.boot_id.empty() && image.reserved == journal::HighWaterMarks{};
  const TokenKey key = TRY(load_or_create_token_key(options.state_dir, is_first_start));
  Facts facts{.now = now, .reattach_grace = options.reattach_grace};
  facts.boot_id = TRY(boot_id());
  const BrokerConfig config = config_of(options, device, key);
  auto table = config.lends_device() ? std::nullopt : take_table(image, facts.boot_id, kept);
  MemoryStore memory;
  if (table) {
    facts.table = kept_slots(*table);
    facts.kept_regions = take_regions(image, kept, memory);
    for (const auto& [id, row] : image.workers) {
      if (is_kept(kept, id)) facts.kept_workers.insert(id);
    }
  }
  find_exited_processes(image, facts);
  Recovered recovered = TRY(recover(image, facts, config));
  log_startup(image, facts);
  warn_of_weights_over_capacity(recovered.state.weights);
  for (const auto& [id, record] : recovered.state.extents.records()) {
    const journal::ExtentRow& row = image.extents.at(id);
    if (row.inode != 0) memory.expect(id, {row.device, row.inode, row.size_bytes});
  }
  const bool was_kept = table.has_value();
  auto spills = take_spills(facts.kept_workers, kept);
  if (!table) table = TRY(LeaseTable::create(recovered.state.config.slot_count));
  return StartupState{.lock = std::move(lock),
                      .journal = std::move(journal),
                      .recovered = std::move(recovered),
                      .table = *std::move(table),
                      .table_kept = was_kept,
                      .memory = std::move(memory),
                      .kept_workers = std::move(facts.kept_workers),
                      .kept_spills = std::move(spills)};
}

std::set<std::string> names_in_use(const StartupState& startup) {
  std::set<std::string> names{std::string(kept::kSocket)};
  if (!startup.table_kept) return names;
  names.emplace(kept::kTable);
  for (const AttachmentId worker : startup.kept_workers) {
    names.insert(
        {kept::segment(worker.value), kept::wakeup_fd(worker.value), kept::pidfd(worker.value)});
  }
  for (const auto& [worker, fd] : startup.kept_spills) names.insert(kept::spill(worker.value));
  for (const auto& [id, region] : startup.recovered.state.weights.regions()) {
    if (startup.memory.region_object(id)) names.insert(kept::weights(id.value));
  }
  return names;
}

}  // namespace leasehold

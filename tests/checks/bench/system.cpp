#include "tests/checks/bench/system.hpp"

#include <fmt/format.h>

#include <fstream>
#include <thread>
#include <utility>

#include "ipc/control/tokens/api_key.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kBrokerStartTimeout = std::chrono::seconds(60);

}  // namespace

Result<std::unique_ptr<System>> System::start(const SystemConfig& config) {
  std::unique_ptr<System> system(new System(config));
  if (config.keep_descriptors) system->store_.emplace();
  system->local_ = TRY(LocalSystem::create({.name = "bench",
                                            .bin_dir = config.bin_dir,
                                            .store = system->store_ ? &*system->store_ : nullptr}));
  const auto started = system->start_processes();
  if (started) return system;
  system->local_->keep_directory();
  return fail(started.error().code, fmt::format("{} (logs: {})", started.error().detail,
                                                system->local_->programs().directory().string()));
}

Result<void> System::start_processes() {
  if (config_.model_path.empty()) return start_broker();
  partition_cores();
  TRY(start_broker());
  return start_worker();
}

/// Partitions the cores only if this thread may use all of them; otherwise the caller has
/// partitioned them already.
void System::partition_cores() {
  const std::uint32_t cores = std::thread::hardware_concurrency();
  if (config_.threads == 0 || config_.threads >= cores) return;
  const auto others = CpuSet::parse(fmt::format("0-{}", cores - config_.threads - 1));
  const auto all = CpuSet::parse(fmt::format("0-{}", cores - 1));
  if (!others || !all || !CpuSet::of_this_thread().contains(*all)) return;
  compute_cpus_ = fmt::format("{}-{}", cores - config_.threads, cores - 1);
  other_cpus_.emplace(*others);
}

Result<void> System::start_broker() {
  std::vector<std::string> arguments = {"--capacity", config_.capacity, "--fence-timeout-ms",
                                        "30000"};
  arguments.insert(arguments.end(), config_.broker_options.begin(), config_.broker_options.end());
  if (config_.journal) {
    const auto state = local_->programs().directory() / "state";
    std::filesystem::create_directories(state);
    std::filesystem::permissions(state, std::filesystem::perms::owner_all);
    arguments.insert(arguments.end(), {"--state-dir", state.string()});
  }
  return local_->start_broker({.arguments = std::move(arguments)}, kBrokerStartTimeout);
}

void System::cache_model() const {
  std::ifstream file(config_.model_path, std::ios::binary);
  std::vector<char> piece(std::size_t{1} << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
  }
}

Result<void> System::start_worker() {
  return start(worker_);
}

Result<void> System::replace_worker() {
  const std::string next = fmt::format("bench-{}", ++replacements_);
  TRY(start(next));
  TRY(broker().command(wire::WorkerReplace{.worker = worker_, .by = next}));
  replaced_ = std::exchange(worker_, next);
  return {};
}

Result<void> System::start(const std::string& worker) {
  std::vector<std::string> arguments;
  if (config_.threads > 0) arguments = {"--threads", std::to_string(config_.threads)};
  if (!compute_cpus_.empty()) arguments.insert(arguments.end(), {"--compute-cpus", compute_cpus_});
  arguments.insert(arguments.end(), config_.worker_options.begin(), config_.worker_options.end());
  TRY(local_->start_worker(worker, config_.model_path, {.arguments = std::move(arguments)}));
  return local_->await_worker(worker, kBrokerStartTimeout);
}

Result<void> System::admit(const std::string& tenant, std::uint32_t weight,
                           std::uint32_t max_concurrent) {
  return broker().command(wire::TenantAdmit{.tenant = {tenant},
                                            .max_concurrent = max_concurrent,
                                            .max_blocks = 1u << 20,
                                            .weight = weight,
                                            .ttl_ms = 3'600'000,
                                            .rebinds_per_minute = 6'000'000,
                                            .rebind_burst = 1u << 20});
}

Result<std::string> System::create_key(const std::string& tenant) {
  std::string key = mint_api_key();
  TRY(broker().command(wire::KeyCreate{.tenant = {tenant}, .hash = hash_of_api_key(key)}));
  return key;
}

Result<void> System::admit_pool(std::uint32_t clients) {
  for (std::uint32_t i = 0; i < clients; ++i) TRY(admit(fmt::format("bench-{}", i)));
  return {};
}

}  // namespace leasehold::bench

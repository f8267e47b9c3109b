#include "tests/checks/soak/models/models_system.hpp"

#include <fmt/format.h>

#include <array>
#include <thread>

#include "kernels/model/gguf/content_digest.hpp"
#include "tools/make_model/write_model.hpp"

namespace leasehold::soak {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(10);
constexpr Duration kStartInterval = std::chrono::milliseconds(100);
constexpr Duration kStartTimeout = std::chrono::seconds(30);
constexpr std::size_t kWorkersPerModel = 2;
constexpr const char* kCapacity = "256MiB";
constexpr const char* kFenceTimeout_ms = "1500";
constexpr std::array kPrompts{"Once upon a time", "There was a little girl who", "One day a dog"};

/// The second model: a shape that computes fast, and a vocabulary of its own.
Result<std::string> write_second_model(const std::filesystem::path& directory) {
  std::string path = directory / "second.gguf";
  const make_model::ModelShape shape = TRY(make_model::named_shape("demo"));
  const make_model::ModelRequest request{.architecture = make_model::Architecture::Qwen2,
                                         .shape = shape,
                                         .type = TensorType::Q8_0,
                                         .seed = 7,
                                         .vocabulary = make_model::Vocabulary::ByteLevel};
  (void)TRY(make_model::write_model(request, path, [](std::uint64_t, std::uint64_t) {}));
  return path;
}

Result<ServedModel> read_model(const std::string& path) {
  const GgufFile file = TRY(GgufFile::open(path));
  std::vector<std::byte> bytes = TRY(read_bytes(path));
  const ContentDigest digest = TRY(content_digest(file));
  return ServedModel{.bytes = std::move(bytes), .selector = "sha256:" + digest.hex()};
}

}  // namespace

ModelsSystem::ModelsSystem(const ModelsSettings& settings, const demo::Poller& poller,
                           std::filesystem::path directory)
    : settings_(settings), poller_(poller), programs_(settings.bin_dir, std::move(directory)) {}

Result<std::unique_ptr<ModelsSystem>> ModelsSystem::create(const ModelsSettings& settings,
                                                           const demo::Poller& poller,
                                                           std::filesystem::path directory) {
  std::unique_ptr<ModelsSystem> system(new ModelsSystem(settings, poller, std::move(directory)));
  TRY(system->add_models());
  TRY(system->add_workers());
  for (std::size_t model = 0; model < system->models_.size(); ++model) {
    for (const char* prompt : kPrompts) {
      const std::size_t number = system->tenants_.size();
      system->tenants_.push_back({.name = fmt::format("t{}", number),
                                  .model = model,
                                  .prompt = prompt,
                                  .seed = settings.seed + number});
    }
  }
  TRY(system->start_broker());
  TRY(system->admit_tenants());
  return system;
}

Result<void> ModelsSystem::add_models() {
  const std::string second = TRY(write_second_model(programs_.directory()));
  for (const std::string& path : {settings_.model_path, second})
    models_.push_back(TRY(read_model(path)));
  return {};
}

Result<void> ModelsSystem::add_workers() {
  logs_.push_back(TRY(LogPipe::create(programs_.log_path("broker"))));
  for (std::size_t i = 0; i < kWorkersPerModel * models_.size(); ++i) {
    const std::string name = fmt::format("w{}", i);
    const std::size_t model = i / kWorkersPerModel;
    logs_.push_back(TRY(LogPipe::create(programs_.log_path("worker-" + name))));
    ModelFile file =
        TRY(ModelFile::create(programs_.directory() / (name + ".gguf"), models_[model].bytes));
    workers_.push_back({.name = name, .model = model, .file = std::move(file)});
  }
  return {};
}

Result<void> ModelsSystem::start_broker() {
  broker_.adopt(TRY(programs_.start_broker(
      {.arguments = {"--capacity", kCapacity, "--fence-timeout-ms", kFenceTimeout_ms}})));
  const TimePoint deadline = clock_.now() + kStartTimeout;
  while (clock_.now() < deadline) {
    auto connected = client::BrokerView::connect(programs_.broker_socket());
    if (connected) {
      broker_view_.emplace(*std::move(connected));
      return {};
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return fail(Errc::TimedOut, "the broker does not answer");
}

Result<void> ModelsSystem::admit_tenants() {
  for (const ModelTenant& tenant : tenants_) {
    TRY(broker_view_->command(wire::TenantAdmit{
        .tenant = {tenant.name}, .max_concurrent = 4, .max_blocks = 1000, .ttl_ms = 5000}));
  }
  return {};
}

Result<void> ModelsSystem::start_worker(ModelWorker& worker) {
  worker.serves_original = worker.file.is_whole();
  worker.started = clock_.now();
  worker.process.adopt(
      TRY(programs_.start_worker(worker.name, worker.file.path(),
                                 {.arguments = {"--threads", "1", "--slow-motion-us",
                                                std::to_string(settings_.slow_motion_us)}})));
  return {};
}

Result<void> ModelsSystem::start_tenant(ModelTenant& tenant) {
  tenant.lines = {};
  tenant.record = {.name = tenant.name};
  tenant.started = clock_.now();
  tenant.process.adopt(TRY(programs_.start_tenant(
      tenant.name, tenant.prompt,
      {.arguments = {"--model", models_[tenant.model].selector, "--temperature", "0.8", "--seed",
                     std::to_string(tenant.seed), "--max-tokens",
                     std::to_string(settings_.max_tokens), "--ignore-eos", "--rebind"}})));
  return {};
}

Result<void> ModelsSystem::poll(bool tenants) {
  std::vector<int> outputs;
  for (ModelTenant& tenant : tenants_)
    if (tenant.process.is_running()) outputs.push_back(tenant.process.output().get());
  TRY(poller_.wait(outputs, kPollInterval));
  for (LogPipe& log : logs_) log.read();
  for (ModelTenant& tenant : tenants_) {
    if (!tenant.process.has_process()) continue;
    const std::size_t before = tenant.record.tokens.size();
    (void)TRY(demo::read_available(tenant.process.output(), tenant.lines, tenant.record));
    tokens_received_ += tenant.record.tokens.size() - before;
  }
  TRY(collect_ends());
  // A process that ends at once is not started in a tight loop.
  const TimePoint before = clock_.now() - kStartInterval;
  for (ModelWorker& worker : workers_)
    if (!worker.process.has_process() && worker.started < before) TRY(start_worker(worker));
  for (ModelTenant& tenant : tenants_)
    if (tenants && !tenant.process.has_process() && tenant.started < before)
      TRY(start_tenant(tenant));
  return {};
}

Result<void> ModelsSystem::collect_ends() {
  if (const auto status = broker_.take_exit_status()) {
    history_.ends.push_back({"broker", *status});
    return fail(Errc::ConnectionLost, fmt::format("the broker ended with status {}", *status));
  }
  for (ModelWorker& worker : workers_) {
    const auto status = worker.process.take_exit_status();
    if (status && !worker.process.was_killed()) history_.ends.push_back({worker.name, *status});
  }
  for (ModelTenant& tenant : tenants_) {
    if (!tenant.process.has_process() || tenant.process.is_running()) continue;
    (void)TRY(demo::read_available(tenant.process.output(), tenant.lines, tenant.record));
    record_text(tenant, tenant.process.take_exit_status().value_or(0));
  }
  return {};
}

/// Records a text that ended. The tenant's first text that ended well came before any disturbance.
void ModelsSystem::record_text(ModelTenant& tenant, int status) {
  if (tenant.record.completed) {
    if (tenant.whole_texts++ == 0) tenant.undisturbed = tenant.record.tokens;
  }
  history_.texts.push_back({.model = models_[tenant.model].selector,
                            .record = std::move(tenant.record),
                            .undisturbed = tenant.undisturbed,
                            .exit_status = status});
}

}  // namespace leasehold::soak

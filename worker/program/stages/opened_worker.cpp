#include "worker/program/stages/opened_worker.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <cerrno>

#include <utility>

namespace leasehold {

Result<std::unique_ptr<OpenedWorker>> OpenedWorker::open(const WorkerOptions& options) {
  spdlog::info("starting model={}", options.model_path);
  auto file = std::make_shared<const GgufFile>(TRY(GgufFile::open(options.model_path)));
  auto digest = TRY(ModelDigest::start(file, options.cache_dir));  // takes longest, so it is first
  OpenedModel model = TRY(OpenedModel::read(std::move(file), options));
  spdlog::info("model opened model=\"{}\" vocabulary={}", model.config.name,
               model.tokenizer.n_vocab());
  std::unique_ptr<OpenedWorker> worker(new OpenedWorker(options, std::move(model)));
  worker->digest = std::move(digest);
  TRY(worker->open_files());
  return worker;
}

Result<void> OpenedWorker::open_files() {
  draft = TRY(DraftModel::open(options, model));
  TRY(open_adapters());
  listener.acceptor = TRY(TenantServer::listen(tenant_io.context(), options.listen_path));
  listener.file = control::SocketFile(options.listen_path);
  TRY(io.start("io"));
  TRY(tenant_io.start("tenants"));
  TRY(metrics.traces().start());
  TRY(step_log.open(options.event_log, options.event_log_bytes));
  if (options.kv_index)
    kv_index = TRY(KvIndexSync::start({.url = *options.kv_index}, options.listen_path + ".index"));
  return {};
}

Result<void> OpenedWorker::open_adapters() {
  if (options.adapters_dir.empty()) return {};
  adapters = UniqueFd(::open(options.adapters_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (adapters) return {};
  return fail_file("--adapters " + options.adapters_dir, errno);
}

OpenedWorker::~OpenedWorker() {
  stop_io();
  listener.file.remove();
}

void OpenedWorker::stop_io() {
  tenant_io.stop();
  io.stop();
}

}  // namespace leasehold

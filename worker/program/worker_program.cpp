#include "worker/program/worker_program.hpp"

#include <utility>

#include "worker/program/stages/ready_worker.hpp"

namespace leasehold {

Result<void> run_worker(const WorkerOptions& options, ReloadOptions reload) {
  const auto opened = TRY(OpenedWorker::open(options));
  const auto attached = TRY(AttachedWorker::attach(*opened));
  const auto loaded = TRY(LoadedWorker::load(*attached));
  const auto ready = TRY(ReadyWorker::start(*loaded, std::move(reload)));
  return ready->run();
}

}  // namespace leasehold

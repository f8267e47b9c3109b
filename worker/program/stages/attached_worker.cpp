#include "worker/program/stages/attached_worker.hpp"

#include <spdlog/spdlog.h>

namespace leasehold {

Result<std::unique_ptr<AttachedWorker>> AttachedWorker::attach(OpenedWorker& opened) {
  const WorkerOptions& options = opened.options;
  std::unique_ptr<AttachedWorker> worker(new AttachedWorker(opened));
  worker->broker_ = TRY(BrokerSession::open(opened.io.context(), opened.clock,
                                            {.broker_socket = options.broker_socket,
                                             .worker_name = options.name,
                                             .timeout = options.broker_timeout},
                                            worker->events_.handlers()));
  const Attachment& attachment = worker->broker_->attachment();
  spdlog::info("attached to the broker worker={} slots={}", attachment.worker.value,
               attachment.table.slot_count());
  return worker;
}

}  // namespace leasehold

#include "worker/lease/attachment.hpp"

#include <fmt/format.h>

#include "common/fault_point.hpp"
#include "common/random.hpp"

namespace leasehold {
namespace {

constexpr Duration kAttachTimeout = std::chrono::seconds(10);

}  // namespace

Result<void> check_protocol(const wire::WorkerAttached& answer) {
  const std::uint32_t theirs = answer.protocol.value_or(wire::kUnnamedProtocol);
  if (theirs >= wire::kWorkerProtocol) return {};
  return fail(Errc::ProtocolMismatch,
              fmt::format("the broker speaks protocol {}, this worker {}; upgrade and restart the "
                          "broker first",
                          theirs, wire::kWorkerProtocol));
}

Result<Attachment> attach_worker(BrokerLink& broker, const std::string& worker_name) {
  const wire::WorkerAttach request{
      .worker = worker_name, .protocol = wire::kWorkerProtocol, .request_id = {mint_request_id()}};
  control::Payload reply = TRY(broker.call(std::string(wire::WorkerAttach::kMethod),
                                           {.body = request.to_json()}, kAttachTimeout));
  const wire::WorkerAttached answer = TRY(wire::WorkerAttached::from_json(reply.body));
  TRY(check_protocol(answer));
  if (reply.fds.size() != 3) {
    return fail(Errc::UntrustedSegment,
                fmt::format("the answer to worker.attach has {} descriptors, 3 are expected",
                            reply.fds.size()));
  }
  if (answer.worker.value >= kMaxWorkers) {
    return fail(
        Errc::UntrustedSegment,
        fmt::format("the broker assigned worker id {}, beyond the limit", answer.worker.value));
  }
  const TokenKey key = TRY(token_key_from_hex(answer.token_key));
  TableReader table = TRY(TableReader::attach(std::move(reply.fds[0])));
  WorkerSegmentWriter segment = TRY(WorkerSegmentWriter::attach(std::move(reply.fds[1])));
  Attachment attachment{.worker = answer.worker,
                        .id = answer.attachment,
                        .token_key = key,
                        .table = std::move(table),
                        .segment = std::move(segment),
                        .device = answer.device,
                        .device_uuid = answer.device_uuid,
                        .wakeup_fd = std::move(reply.fds[2])};
  fault_point(FaultSite::WorkerAttached);
  return attachment;
}

}  // namespace leasehold

#include "broker/server/replies.hpp"

#include <fmt/format.h>

namespace leasehold {

CallId Replies::add(control::Responder responder) {
  const CallId call{next_++};
  waiting_.emplace(call, std::move(responder));
  return call;
}

void Replies::answer(CallId call, const Result<Answer>& answer) {
  auto node = waiting_.extract(call);
  if (node.empty()) return;
  if (!answer) return node.mapped()(std::unexpected(answer.error()));
  node.mapped()(payload(*answer));
}

Result<control::Payload> Replies::payload(const Answer& answer) {
  std::vector<UniqueFd> fds = TRY(descriptors(answer));
  auto body = std::visit([](const auto& message) { return message.to_json(); }, answer.body);
  return control::Payload{.body = std::move(body), .fds = std::move(fds)};
}

Result<std::vector<UniqueFd>> Replies::descriptors(const Answer& answer) {
  std::vector<UniqueFd> fds;
  if (const auto* worker = std::get_if<WorkerDescriptors>(&answer.descriptors)) {
    const WorkerLink* link = links_.find(worker->worker);
    if (link == nullptr) {
      return fail(Errc::ConnectionLost,
                  fmt::format("the worker of attachment {} has exited; attach again",
                              worker->worker.value));
    }
    fds.push_back(TRY(table_.reader_fd()));
    fds.push_back(TRY(link->segment.writer_fd()));
    fds.push_back(TRY(link->wakeup_fd.duplicate()));
  }
  if (const auto* region = std::get_if<RegionDescriptor>(&answer.descriptors)) {
    fds.push_back(TRY(memory_.region_fd(region->region, region->writable)));
  }
  return fds;
}

}  // namespace leasehold

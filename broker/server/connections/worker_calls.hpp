/// Performs the effects that are calls to a worker. The reply, or its absence, is posted as an
/// event. Threads: the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "broker/decide/core.hpp"
#include "broker/server/connections/worker_links.hpp"

namespace leasehold {

template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error());
}

class WorkerCalls {
 public:
  /// All references outlive the object.
  struct Dependencies {
    boost::asio::io_context& io;
    WorkerLinks& links;
    Duration timeout;  ///< Timeout for a reply for which a caller waits.
    std::function<void(Event)> post;
  };
  explicit WorkerCalls(Dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  void perform(const effect::SendQuota& effect);
  void perform(const effect::SendSampling& effect);
  void perform(const effect::SendAdmission& effect);
  void perform(const effect::SendAsleep& effect);
  void perform(const effect::SendSettle& effect);
  void perform(const effect::SendPing& effect);
  void perform(const effect::SendReclaim& effect);
  void perform(const effect::SendFill& effect);
  void perform(const effect::SendAdapterOrder& effect);
  void perform(const effect::NotifyAdapters& effect);

  /// `memory` has a descriptor for each extent of the grant.
  void grant(const effect::SendGrant& effect, std::vector<UniqueFd> memory);
  void unmap(const effect::SendUnmap& effect);
  void drain(const effect::SetDrainDeadline& effect);

 private:
  using OnReply = std::function<void(Result<control::Payload>)>;
  /// Calls the worker, with the timeout that the message names.
  template <class Message>
  void call(AttachmentId worker, const Message& message, OnReply on_reply,
            std::vector<UniqueFd> fds = {});

  Dependencies dependencies_;
};

}  // namespace leasehold

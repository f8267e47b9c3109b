#include "tests/checks/soak/text_publisher.hpp"

#include <utility>

#include "common/random.hpp"
#include "ipc/client/parse_message.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::soak {
namespace {

constexpr Duration kInterval = std::chrono::milliseconds(200);
/// Timeout of a call, because a stopped worker computes nothing and a stopped broker does not
/// answer.
constexpr Duration kTimeout = std::chrono::seconds(10);

}  // namespace

TextPublisher::TextPublisher(std::string broker_socket, std::string text)
    : broker_socket_(std::move(broker_socket)), text_(std::move(text)) {}

TextPublisher::~TextPublisher() {
  if (const auto broker = std::exchange(broker_, nullptr)) broker->close_now();
}

void TextPublisher::poll(const std::vector<std::string>& workers) {
  io_.restart();
  io_.poll();
  if (!broker_ && !workers.empty()) connect();
  if (!broker_) return;
  for (const std::string& name : workers) {
    Worker& worker = workers_[name];
    if (!worker.is_asked && timers_.now() >= worker.due) ask(name, worker);
  }
}

void TextPublisher::connect() {
  auto socket = control::connect_to(io_, broker_socket_);
  if (!socket) return;
  broker_ = control::Peer::create(
      *std::move(socket), {.on_call = {},
                           .on_notification = [](const std::string&, const control::Payload&) {},
                           .on_closed = [this](const Error&) { broker_ = nullptr; }});
  broker_->start();
}

void TextPublisher::ask(const std::string& name, Worker& worker) {
  const wire::PrefixPublish publish{
      .worker = name, .text = text_, .name = "soak", .request_id = {mint_request_id()}};
  worker.is_asked = true;
  ++open_calls_;
  broker_->call(
      std::string(wire::PrefixPublish::kMethod), {.body = publish.to_json()},
      [this, &worker](const Result<control::Payload>& reply) { answered(worker, reply); },
      kTimeout);
}

void TextPublisher::answered(Worker& worker, const Result<control::Payload>& reply) {
  worker.is_asked = false;
  worker.due = timers_.now() + kInterval;
  --open_calls_;
  if (!reply) return;
  const auto published = client::parse_message<wire::PrefixPublished>(reply->body);
  if (published && std::exchange(worker.lease, published->lease) != published->lease)
    ++publications_;
}

}  // namespace leasehold::soak

#include "tests/checks/bench/light_worker.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>

#include "common/random.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kBlockBytes = 256 << 10;  // eight to an extent of 2 MiB
constexpr std::size_t kDescriptors = 3;

}  // namespace

Result<std::unique_ptr<LightWorker>> LightWorker::attach(const std::string& broker_socket) {
  std::unique_ptr<LightWorker> worker(new LightWorker());
  TRY(worker->start(broker_socket));
  return worker;
}

Result<void> LightWorker::start(const std::string& broker_socket) {
  const auto take = [](const std::string&, control::Payload, control::Responder respond) {
    respond(
        control::Payload{.body = wire::Empty{}.to_json()});  // the payload closes its descriptors
  };
  peer_ = control::Peer::create(TRY(control::connect_to(io_, broker_socket)),
                                {.on_call = take, .on_notification = {}, .on_closed = {}});
  peer_->start();
  thread_ = std::jthread([this] {
    const auto keep_running = boost::asio::make_work_guard(io_);
    io_.run();
  });
  const wire::WorkerAttach attach{.worker = "light", .request_id = {mint_request_id()}};
  control::Payload attached = TRY(call("worker.attach", attach.to_json()));
  if (attached.fds.size() != kDescriptors) {
    return fail(Errc::MalformedMessage, "worker.attach must answer with three descriptors");
  }
  table_ = TRY(TableReader::attach(std::move(attached.fds[0])));
  segment_ = std::move(attached.fds[1]);
  wakeup_fd_ = std::move(attached.fds[2]);
  TRY(wire::WorkerAttached::from_json(attached.body));
  const wire::WorkerReady ready{.address = "/nowhere",
                                .model = "none",
                                .kv_block_size_bytes = kBlockBytes,
                                .request_id = {mint_request_id()}};
  TRY(call("worker.ready", ready.to_json()));
  return {};
}

LightWorker::~LightWorker() {
  io_.stop();
}

Result<control::Payload> LightWorker::call(const std::string& method, control::Json params) {
  std::promise<Result<control::Payload>> replied;
  boost::asio::post(io_, [&] {
    peer_->call(method, {std::move(params), {}},
                [&replied](auto reply) { replied.set_value(std::move(reply)); });
  });
  return replied.get_future().get();
}

}  // namespace leasehold::bench

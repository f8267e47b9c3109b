#include "tests/process/broker/fake_worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <future>
#include <iterator>
#include <stdexcept>

#include "common/random.hpp"
#include "ipc/segment/launch_gate.hpp"

namespace leasehold {

namespace {

void write_one_byte(const UniqueFd& extent) {
  const auto mapping = Mapping::map(extent, 4096, MapAccess::ReadWrite).value();
  mapping.data()[0] = std::byte{1};
}

}  // namespace

FakeWorker::FakeWorker(const std::string& socket, const std::string& name,
                       const std::string& kv_identity)
    : name_(name), kv_identity_(kv_identity) {
  connect(socket);
  thread_ = std::jthread([this] {
    const auto keep_running = boost::asio::make_work_guard(io_);
    io_.run();
  });
  const wire::WorkerAttach attach{.worker = name, .request_id = {mint_request_id()}};
  control::Payload attached = call("worker.attach", attach.to_json());
  table_ = TableReader::attach(std::move(attached.fds.at(0))).value();
  segment_ = WorkerSegmentWriter::attach(std::move(attached.fds.at(1))).value();
  wakeup_fd_ = std::move(attached.fds.at(2));
  const auto reply = wire::WorkerAttached::from_json(attached.body).value();
  token_key_ = token_key_from_hex(reply.token_key).value();
  attachment_ = reply.attachment;
  send_ready().value();
}

void FakeWorker::connect(const std::string& socket) {
  peer_ = control::Peer::create(
      control::connect_to(io_, socket).value(),
      {.on_call =
           [this](const std::string& method, control::Payload params, control::Responder respond) {
             answer(method, std::move(params), std::move(respond));
           },
       .on_notification = nullptr,
       .on_closed = nullptr});
  peer_->start();
}

Result<void> FakeWorker::reconnect(const std::string& socket) {
  std::promise<void> connected;
  boost::asio::post(io_, [&] {
    connect(socket);
    connected.set_value();
  });
  connected.get_future().get();
  const wire::WorkerAttach attach{
      .worker = name_, .resume = attachment_, .request_id = {mint_request_id()}};
  TRY(ask("worker.attach", {attach.to_json(), {}}));
  return {};
}

Result<void> FakeWorker::redeliver(LeaseId lease, std::vector<ExtentId> extents,
                                   std::vector<UniqueFd> fds) {
  const wire::LeaseRedeliver message{.lease = lease, .extents = std::move(extents)};
  TRY(ask("lease.redeliver", {message.to_json(), std::move(fds)}));
  return {};
}

Result<void> FakeWorker::send_ready() {
  const wire::WorkerReady ready{
      .address = "/nowhere",
      .model = "none",
      .kv_block_size_bytes = 256 * 1024,
      .kv_identity = kv_identity_.empty() ? std::nullopt : std::optional(kv_identity_),
      .request_id = {mint_request_id()}};
  TRY(ask("worker.ready", {ready.to_json(), {}}));
  return {};
}

FakeWorker::~FakeWorker() {
  io_.stop();
}

control::Payload FakeWorker::call(const std::string& method, control::Json params) {
  auto reply = ask(method, {std::move(params), {}});
  if (!reply) throw std::runtime_error(method + ": " + reply.error().detail);
  return *std::move(reply);
}

Result<control::Payload> FakeWorker::ask(const std::string& method, control::Payload params) {
  std::promise<Result<control::Payload>> replied;
  boost::asio::post(io_, [&] {
    peer_->call(method, std::move(params),
                [&replied](auto reply) { replied.set_value(std::move(reply)); });
  });
  return replied.get_future().get();
}

void FakeWorker::answer(const std::string& method, control::Payload params,
                        control::Responder respond) {
  const std::lock_guard lock(mutex_);
  if (method == "lease.grant") {
    const auto grant = wire::LeaseGrant::from_json(params.body).value();
    std::ranges::copy(grant.extents, std::back_inserter(extents_[grant.lease]));
    if (grant.adopted_from) adopted_from_[grant.lease] = *grant.adopted_from;
    if (!kv_identity_.empty() && !grant.adopted_from)
      std::ranges::for_each(params.fds, write_one_byte);
    std::ranges::move(params.fds, std::back_inserter(granted_[grant.lease]));
  } else if (method == "lease.settle" && defers_settle_replies_) {
    return settling_.push_back(std::move(respond));
  } else if (method == "lease.unmap") {
    const LeaseId lease = wire::LeaseUnmap::from_json(params.body).value().lease;
    if (writes_before_unmap_) std::ranges::for_each(granted_.at(lease), write_one_byte);
    granted_.erase(lease);
  }
  respond(control::Payload{});
}

void FakeWorker::report(const wire::EventReport& events) {
  call(std::string(wire::EventReport::kMethod), events.to_json());
}

std::size_t FakeWorker::settling() {
  const std::lock_guard lock(mutex_);
  return settling_.size();
}

void FakeWorker::send_settle_replies() {
  boost::asio::post(io_, [this] {
    const std::lock_guard lock(mutex_);
    for (control::Responder& respond : std::exchange(settling_, {})) respond(control::Payload{});
  });
}

void FakeWorker::signal_wakeup_fd() {
  const std::uint64_t one = 1;
  (void)!::write(wakeup_fd_.get(), &one, sizeof one);
}

UniqueFd FakeWorker::keep_extent(LeaseId lease) {
  const std::lock_guard lock(mutex_);
  return granted_.at(lease).at(0).duplicate().value();
}

std::vector<ExtentId> FakeWorker::extents_of(LeaseId lease) {
  const std::lock_guard lock(mutex_);
  return extents_.at(lease);
}

std::vector<UniqueFd> FakeWorker::copies_of(LeaseId lease) {
  const std::lock_guard lock(mutex_);
  std::vector<UniqueFd> copies;
  for (const UniqueFd& fd : granted_.at(lease)) copies.push_back(fd.duplicate().value());
  return copies;
}

std::optional<LeaseId> FakeWorker::adopted_from(LeaseId lease) {
  const std::lock_guard lock(mutex_);
  const auto found = adopted_from_.find(lease);
  return found == adopted_from_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t FakeWorker::granted() {
  const std::lock_guard lock(mutex_);
  return granted_.size();
}

Result<wire::WeightsOpened> FakeWorker::open_weights() {
  const wire::WeightsOpen open{.model = "m",
                               .file_inode = 1,
                               .file_size_bytes = 9,
                               .layout_digest = std::string(64, 'a'),
                               .size_bytes = 1 << 20,
                               .request_id = {mint_request_id()}};
  const control::Payload reply = TRY(ask("weights.open", {open.to_json(), {}}));
  return wire::WeightsOpened::from_json(reply.body);
}

Result<void> FakeWorker::publish_weights(RegionId region) {
  const wire::WeightsPublish publish{.region = region, .request_id = {mint_request_id()}};
  TRY(ask("weights.publish", {publish.to_json(), {}}));
  return {};
}

Result<wire::LeaseResized> FakeWorker::grow_swap(LeaseId lease, std::uint32_t extents) {
  const wire::LeaseGrow grow{.lease = lease,
                             .extents = extents,
                             .pool = wire::MemoryPool::Swap,
                             .request_id = {mint_request_id()}};
  const control::Payload reply = TRY(ask("lease.grow", {grow.to_json(), {}}));
  return wire::LeaseResized::from_json(reply.body);
}

Result<UniqueFd> FakeWorker::open_spill() {
  control::Payload reply =
      TRY(ask(std::string(wire::SpillOpened::kOpen), {wire::Empty{}.to_json(), {}}));
  const auto opened = TRY(wire::SpillOpened::from_json(reply.body));
  if (opened.size_bytes == 0) return UniqueFd();
  return std::move(reply.fds.at(0));
}

void FakeWorker::disconnect() {
  boost::asio::post(io_, [this] { peer_->close(); });
}

ForkedProcess start_stuck_worker(const std::string& socket, const std::string& name,
                                 const std::string& kv_identity) {
  return ForkedProcess(::geteuid(), [&] {
    static FakeWorker worker(socket, name, kv_identity);
    worker.begin_unit();
  });
}

}  // namespace leasehold

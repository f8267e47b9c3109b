/// A worker's session with brokers that answer as the tests want, over real sockets.
#include "worker/lease/broker_session.hpp"

#include <sys/eventfd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "ipc/table/lease_table.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"

using namespace leasehold;

namespace {

/// A broker that attaches and resumes one worker, on the thread of `io`.
class FakeBroker {
 public:
  FakeBroker(boost::asio::io_context& io, const std::string& path)
      : io_(&io), acceptor_(control::listen_on(io, path, 0600).value()) {
    accept();
  }

  /// The connection breaks, and a broker of another protocol takes the next one.
  void restart_as(std::optional<std::uint32_t> protocol) {
    boost::asio::post(*io_, [this, protocol] {
      protocol_ = protocol;
      peer_->close_now();
    });
  }

  std::atomic<int> resumed = 0;
  std::atomic<int> ready = 0;

 private:
  void accept() {
    acceptor_.async_accept([this](const auto& error, control::Socket socket) {
      if (error) return;
      peer_ = control::Peer::create(
          std::move(socket),
          {.on_call = [this](const std::string& method, control::Payload params,
                             control::Responder respond) { respond(answer(method, params.body)); },
           .on_notification = nullptr,
           .on_closed = nullptr});
      peer_->start();
      accept();
    });
  }

  control::Payload answer(const std::string& method, const control::Json& params) {
    if (method == wire::WorkerReady::kMethod) {
      ++ready;
      return {
          .body =
              wire::ExtentShape{.extent_size_bytes = 2u << 20, .blocks_per_extent = 1}.to_json()};
    }
    wire::WorkerAttached attached{.token_key = std::string(64, 'a'), .protocol = protocol_};
    attached.resumed = wire::WorkerAttach::from_json(params).value().resume.has_value();
    control::Payload reply{.body = attached.to_json()};
    if (attached.resumed) {
      ++resumed;
      return reply;
    }
    reply.fds.push_back(table_.reader_fd().value());
    reply.fds.push_back(segment_.writer_fd().value());
    reply.fds.emplace_back(::eventfd(0, EFD_CLOEXEC));
    return reply;
  }

  boost::asio::io_context* io_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  LeaseTable table_ = LeaseTable::create(4).value();
  WorkerSegmentReader segment_ = WorkerSegmentReader::create().value();
  std::optional<std::uint32_t> protocol_ = wire::kWorkerProtocol;
  std::shared_ptr<control::Peer> peer_;
};

/// A worker of a broker of its own protocol.
struct Worker {
  /// `Dead` leaves its socket file.
  enum class Broker { Serves, Dead, None };
  explicit Worker(Broker kind = Broker::Serves) {
    if (kind == Broker::Serves) start_broker();
    if (kind == Broker::Dead) (void)control::listen_on(io, folder.file("s"), 0600).value();
  }

  TemporaryDirectory folder = TemporaryDirectory::create("session").value();
  boost::asio::io_context io;
  std::optional<FakeBroker> broker;
  SystemClock clock;
  LeaseService leases{{.io = &io}};
  std::mutex mutex;
  std::vector<Error> lost;
  std::unique_ptr<BrokerSession> session;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work =
      boost::asio::make_work_guard(io);
  std::jthread runs{[this] { io.run(); }};

  void start_broker() { broker.emplace(io, folder.file("s")); }

  Result<std::unique_ptr<BrokerSession>> open(Duration timeout) {
    return BrokerSession::open(
        io, clock, {.broker_socket = folder.file("s"), .worker_name = "w1", .timeout = timeout},
        {.on_call = nullptr,
         .on_connection_changed = [](bool) {},
         .on_broker_lost =
             [this](const Error& why) {
               const std::scoped_lock lock(mutex);
               lost.push_back(why);
             }});
  }
  void become_ready() {
    session = open(std::chrono::seconds(60)).value();
    const auto shape = session->announce_ready({}, leases);
    if (!shape) FAIL(shape.error().detail);
  }
  ~Worker() {
    io.stop();
    runs.join();
  }
};

}  // namespace

TEST_CASE("broker session: a worker that starts before its broker waits for it") {
  // Of a broker that has ended, or of none.
  const bool has_stale_socket = GENERATE(false, true);
  Worker worker(has_stale_socket ? Worker::Broker::Dead : Worker::Broker::None);
  auto opening = std::async(std::launch::async, [&] { return worker.open(std::chrono::hours(1)); });
  CHECK(opening.wait_for(std::chrono::milliseconds(0)) == std::future_status::timeout);
  worker.start_broker();
  auto opened = opening.get();
  REQUIRE(opened);
  worker.session = *std::move(opened);  // it ends after its I/O thread
}

TEST_CASE("broker session: a worker gives up on a broker that does not come, and says how long") {
  Worker worker(GENERATE(Worker::Broker::None, Worker::Broker::Dead));
  const auto opened = worker.open(std::chrono::milliseconds(1));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Errc::BrokerLost);
  CHECK_THAT(opened.error().detail, Catch::Contains("no broker within 1 ms (--broker-timeout-ms)"));
}

TEST_CASE("broker session: a worker resumes at a broker of its own or a newer protocol") {
  Worker worker;
  worker.become_ready();
  worker.broker->restart_as(
      GENERATE(as<std::uint32_t>{}, wire::kWorkerProtocol, wire::kWorkerProtocol + 1));
  REQUIRE(eventually([&] { return worker.broker->ready == 2; }));
  REQUIRE(eventually([&] { return !worker.session->is_disconnected(); }));
  CHECK_FALSE(worker.session->is_lost());
}

TEST_CASE("broker session: a worker does not resume at an older broker, and says what to upgrade") {
  Worker worker;
  worker.become_ready();
  worker.broker->restart_as(
      GENERATE(as<std::optional<std::uint32_t>>{}, std::nullopt, wire::kWorkerProtocol - 1));
  REQUIRE(eventually([&] { return worker.session->is_lost(); }));
  CHECK(worker.broker->resumed == 1);
  CHECK(worker.broker->ready == 1);  // before the restart
  const std::scoped_lock lock(worker.mutex);
  REQUIRE(worker.lost.size() == 1);
  CHECK(worker.lost.front().code == Errc::BrokerLost);
  CHECK(worker.lost.front().detail.find("upgrade and restart the broker") != std::string::npos);
}

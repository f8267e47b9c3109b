// Weights whose engine leases are revoked while they are loaded, against a broker of the test.
#include "worker/lease/weights_source.hpp"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>
#include <thread>

#include "common/temporary_directory.hpp"
#include "tests/support/gguf_builder.hpp"

namespace leasehold::weights_source_test {
namespace {

using testing::TemporaryFile;

/// Refuses each weights.open with LeaseRevoked, and after `revocations` of them with BadRequest.
struct Loading {
  explicit Loading(std::uint32_t revocations)
      : left(revocations),
        broker(control::Peer::create(
            acceptor.accept(),
            {.on_call = [this](const std::string& method, const control::Payload&,
                               control::Responder respond) { respond(answer(method)); },
             .on_notification = nullptr,
             .on_closed = [](const Error&) {}})) {
    broker->start();
    io_thread = std::thread([this] { io.run(); });
  }
  ~Loading() {
    io.stop();
    io_thread.join();
  }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

  std::unexpected<Error> answer(const std::string& method) {
    if (method != wire::WeightsOpen::kMethod) return fail(Errc::UnknownMethod, method);
    ++opened;
    if (left == 0) return fail(Errc::BadRequest, "no more");
    --left;
    return fail(Errc::LeaseRevoked, "lease 1.1 was revoked (operator)");
  }
  Error load() {
    WeightsSource source(
        file, config, plan,
        {.broker = link.get(), .progress = {}, .retry_interval = Duration::zero()});
    auto weights = source.acquire();
    REQUIRE_FALSE(weights);
    return weights.error();
  }

  TemporaryFile model{testing::tiny_llama().bytes()};
  GgufFile file = GgufFile::open(model.path()).value();
  ModelConfig config = read_config(file).value();
  WeightsPlan plan =
      make_weights_plan(make_weights_layout(file, config).value(), WeightsScope::Layer);
  std::uint32_t left;
  std::atomic<std::uint32_t> opened = 0;
  TemporaryDirectory folder = TemporaryDirectory::create("weights").value();
  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work =
      boost::asio::make_work_guard(io);
  boost::asio::local::stream_protocol::acceptor acceptor =
      control::listen_on(io, folder.file("s"), 0600).value();
  std::unique_ptr<BrokerLink> link =
      BrokerLink::connect(io, folder.file("s"),
                          {.on_call = {}, .on_disconnected = [](const Error&) {}})
          .value();
  std::shared_ptr<control::Peer> broker;
  std::thread io_thread;
};

}  // namespace

TEST_CASE("weights source: a part whose lease is revoked each time ends the load after 8 reloads") {
  Loading loading(100);

  const Error error = loading.load();

  CHECK(error.code == Errc::LeaseRevoked);
  CHECK(error.scope == FailureScope::Engine);
  CHECK(error.detail.contains("part token_embd"));
  CHECK(error.detail.contains("lease 1.1 was revoked (operator)"));
  CHECK(error.detail.contains("start the worker again"));
  CHECK(loading.opened == 1 + WeightsSource::kMaxReloads);
}

TEST_CASE("weights source: after 8 reloads the next answer of the broker still counts") {
  Loading loading(WeightsSource::kMaxReloads);

  CHECK(loading.load().code == Errc::BadRequest);

  CHECK(loading.opened == 1 + WeightsSource::kMaxReloads);
}

}  // namespace leasehold::weights_source_test

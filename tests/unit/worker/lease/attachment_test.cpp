#include "worker/lease/attachment.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/support/temporary_directory.hpp"

using namespace leasehold;

namespace {

/// What a worker gets from a broker that answers its attach with this protocol and no descriptors.
Error refusal_of_broker(std::optional<std::uint32_t> protocol) {
  boost::asio::io_context io;
  const auto folder = TemporaryDirectory::create("attach").value();
  auto acceptor = control::listen_on(io, folder.file("s"), 0600).value();
  const auto link =
      BrokerLink::connect(io, folder.file("s"), {.on_call = {}, .on_disconnected = {}}).value();
  const auto broker = control::Peer::create(
      acceptor.accept(),
      {.on_call =
           [protocol](const std::string&, control::Payload, control::Responder respond) {
             respond(
                 control::Payload{.body = wire::WorkerAttached{.token_key = std::string(64, 'a'),
                                                               .protocol = protocol}
                                              .to_json()});
           },
       .on_notification = nullptr,
       .on_closed = nullptr});
  broker->start();
  const std::jthread runs([&io] {
    const auto keep_running = boost::asio::make_work_guard(io);
    io.run();
  });
  const auto attached = attach_worker(*link, "w1");
  io.stop();
  REQUIRE_FALSE(attached.has_value());
  return attached.error();
}

}  // namespace

TEST_CASE("attachment: a worker serves no broker that is older, and says what to upgrade") {
  const Error refused = refusal_of_broker(std::nullopt);
  CHECK(refused.code == Errc::ProtocolMismatch);
  CHECK(refused.detail.find("upgrade and restart the broker") != std::string::npos);
}

TEST_CASE("attachment: a broker of the same or a newer protocol is not refused for it") {
  CHECK(refusal_of_broker(wire::kWorkerProtocol).code == Errc::UntrustedSegment);
  CHECK(refusal_of_broker(wire::kWorkerProtocol + 1).code == Errc::UntrustedSegment);
}

// Hostile tenants receive a typed error or lose their connection. Another tenant's lease stays live
// and the broker keeps serving.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <random>

#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/fake_worker.hpp"
#include "tests/process/broker/forked_process.hpp"
#include "tests/support/raw_socket.hpp"

using namespace leasehold;

namespace {

constexpr int kTimeout_ms = 60'000;

/// A raw socket connection that does not use the project's client code.
class RawPeer {
 public:
  explicit RawPeer(const std::string& path) : fd_(testing::connect_raw(path)) {}
  bool is_connected() const { return static_cast<bool>(fd_); }

  /// Returns false when the socket is full or closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent =
          ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Waits while the socket is full. Returns false when it is closed.
  bool send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      pollfd entry{fd_.get(), POLLOUT, 0};
      if (::poll(&entry, 1, kTimeout_ms) <= 0) return false;
      const ssize_t sent =
          ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent <= 0 && errno != EAGAIN) return false;
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// The next line; empty when the connection is closed.
  std::string line() {
    while (true) {
      const auto end = pending_.find('\n');
      if (end != std::string::npos) {
        std::string found = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return found;
      }
      pollfd entry{fd_.get(), POLLIN, 0};
      char bytes[4096];
      if (::poll(&entry, 1, kTimeout_ms) <= 0) return "no reply";
      const ssize_t got = ::recv(fd_.get(), bytes, sizeof bytes, 0);
      if (got <= 0) return "";
      pending_.append(bytes, static_cast<std::size_t>(got));
    }
  }

  bool is_hung_up() const {
    pollfd entry{fd_.get(), 0, 0};
    return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLHUP) != 0;
  }

  std::string code() {
    std::string text = line();
    const auto reply = control::Json::parse(text, nullptr, false);
    if (!reply.is_object() || !reply.contains("error")) return text;
    return reply.at("error").at("data").at("code").get<std::string>();
  }

 private:
  UniqueFd fd_;
  std::string pending_;
};

/// A broker with a well-behaved tenant whose lease the hostile tenants must not affect.
struct HarmlessTenant : BrokerWithWorker {
  LeaseId lease = broker.acquire(client, "a").value().lease;
  void check_unharmed() {
    CHECK(worker.word_of(lease).state() == LeaseState::Live);
    CHECK(broker.view(client, lease).state == LeaseState::Live);
    CHECK(broker.status(client).leases_live == 1);
  }
};

std::string call_line(const std::string& method, const std::string& params) {
  return R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}\n";
}

/// A call that no broker knows, whose line takes milliseconds to parse.
std::string expensive_call(std::size_t values) {
  std::string list = "1";
  for (std::size_t i = 1; i < values; ++i) list += ",\"\"";
  return call_line("none", R"({"a":[)" + list + "]}");
}

constexpr std::size_t kManyValues = 100'000;  ///< 300 kB.
constexpr std::size_t kSomeValues = 2'000;    ///< 6 kB.

void check_serves(RawPeer& peer) {
  REQUIRE(peer.send(call_line("status", "{}")));
  CHECK(peer.line().find("capacity_bytes") != std::string::npos);
}

std::string code_of_answer(RawPeer& peer, const std::string& line) {
  peer.send_all(line);
  return peer.code();
}

std::string attach_line(const std::string& worker) {
  const wire::WorkerAttach attach{.worker = worker, .request_id = next_request_id()};
  return call_line(std::string(attach.kMethod), attach.to_json().dump());
}

}  // namespace

TEST_CASE_METHOD(HarmlessTenant, "security: every garbage line is answered with a typed error") {
  RawPeer peer(broker.socket());
  const std::vector<std::string> garbage = {"garbage",
                                            "{",
                                            "[]",
                                            "null",
                                            "42",
                                            "\"text\"",
                                            "{}",
                                            std::string("\0\0\0", 3),
                                            "\xff\xfe\xfd",
                                            R"({"jsonrpc":"1.0","id":1,"method":"status"})",
                                            R"({"jsonrpc":"2.0","id":{},"method":"status"})",
                                            R"({"jsonrpc":"2.0","id":1,"method":7})"};
  for (const std::string& text : garbage) {
    INFO(text);
    REQUIRE(peer.send(text + "\n"));
    CHECK(errc_from_name(peer.code()).has_value());
  }
  std::mt19937 random(11);
  std::string noise;
  for (int i = 0; i < 4096; ++i) noise += static_cast<char>(random());
  std::erase(noise, '\n');
  REQUIRE(peer.send(noise + "\n"));
  CHECK(errc_from_name(peer.code()).has_value());
  check_serves(peer);
  check_unharmed();
}

TEST_CASE_METHOD(HarmlessTenant, "security: malformed parameters are refused") {
  RawPeer peer(broker.socket());
  const std::vector<std::string> wrong = {
      "[]",
      "7",
      R"({"tenant":7,"request_id":"r"})",
      R"({"tenant":"a","blocks":-1,"ttl_ms":0,"request_id":"r"})",
      R"({"tenant":"a","blocks":99999999999999999999,"ttl_ms":0,"request_id":"r"})",
      R"({"tenant":"a","blocks":1e308,"ttl_ms":0,"request_id":"r"})",
      R"({"tenant":"../../etc","blocks":1,"ttl_ms":0,"request_id":"r"})",
      R"({"tenant":"a\u0000b","blocks":1,"ttl_ms":0,"request_id":"r"})",
      R"({"tenant":"a","blocks":1,"ttl_ms":0,"request_id":""})",
      R"({"tenant":"a","blocks":1,"ttl_ms":0,"replaces":"1.0","request_id":"r"})"};
  for (const std::string& params : wrong) {
    INFO(params);
    REQUIRE(peer.send(call_line("lease.acquire", params)));
    const std::string code = peer.code();
    CHECK((code == "BadRequest" || code == "MalformedMessage"));
  }
  check_unharmed();
}

TEST_CASE_METHOD(HarmlessTenant, "security: incomplete messages do not block other callers") {
  std::vector<RawPeer> slow;
  for (int i = 0; i < 50; ++i) {
    slow.emplace_back(broker.socket());
    REQUIRE(slow.back().is_connected());
    slow.back().send(R"({"jsonrpc":"2.0","id":1,"meth)");
  }
  check_unharmed();
  slow.clear();  // closes the connections in the middle of a message
  check_unharmed();
}

TEST_CASE_METHOD(HarmlessTenant,
                 "security: a line beyond the size limit is refused and its connection closed") {
  RawPeer peer(broker.socket());
  const std::string much(1 << 16, 'x');
  REQUIRE(eventually([&] {
    peer.send(much);
    return peer.is_hung_up();
  }));
  CHECK(peer.code() == "MessageTooLarge");
  check_unharmed();
}

TEST_CASE("security: expensive lines are refused unparsed, except of operators and workers") {
  if (!can_change_user()) return;
  BrokerProcess broker({"--worker-uid", std::to_string(kNobody)});

  const std::string strangers = as_user(kNobody - 1, [&] {
    std::vector<RawPeer> peers;
    for (int i = 0; i < 8; ++i) peers.emplace_back(broker.socket());
    std::string codes;
    for (RawPeer& peer : peers) codes += code_of_answer(peer, expensive_call(kManyValues)) + " ";
    RawPeer peer(broker.socket());
    codes += code_of_answer(peer, expensive_call(kSomeValues)) + " ";
    return codes + code_of_answer(peer, call_line("none", "{}"));
  });
  std::string expected;
  for (int i = 0; i < 8; ++i) expected += "MessageTooLarge ";
  CHECK(strangers == expected + "MalformedMessage UnknownMethod");

  const std::string worker = as_user(kNobody, [&] {
    RawPeer before(broker.socket());
    RawPeer attached(broker.socket());
    const std::string early = code_of_answer(before, expensive_call(kManyValues));
    attached.send_all(attach_line("w1"));
    const bool is_attached = attached.line().find("attachment") != std::string::npos;
    return early + (is_attached ? ", attached, " : ", refused, ") +
           code_of_answer(attached, expensive_call(kManyValues));
  });
  CHECK(worker == "MessageTooLarge, attached, UnknownMethod");

  RawPeer operator_peer(broker.socket());
  CHECK(code_of_answer(operator_peer, expensive_call(kManyValues)) == "UnknownMethod");
}

TEST_CASE_METHOD(HarmlessTenant,
                 "security: JSON nested too deep is refused and the connection stays open") {
  RawPeer peer(broker.socket());
  const std::string deep = std::string(5'000, '[') + std::string(5'000, ']');
  REQUIRE(peer.send(call_line("status", R"({"x":)" + deep + "}")));
  CHECK(errc_from_name(peer.code()).has_value());
  check_serves(peer);
  check_unharmed();
}

TEST_CASE_METHOD(HarmlessTenant,
                 "security: a wrong number of descriptors is answered with a typed error") {
  for (const char* fds : {"-1", "1", "64", "1e9", "\"two\""}) {
    INFO(fds);
    RawPeer peer(broker.socket());
    REQUIRE(peer.send(R"({"jsonrpc":"2.0","id":1,"method":"status","fds":)" + std::string(fds) +
                      "}\n"));
    CHECK(errc_from_name(peer.code()).has_value());
  }
  check_unharmed();
}

TEST_CASE_METHOD(HarmlessTenant,
                 "security: unexpected descriptors close only the connection that sent them") {
  RawPeer bystander(broker.socket());
  control::Client sender = broker.connect();
  for (int i = 0; i < 3; ++i) {
    control::Payload payload;
    payload.fds.emplace_back(::dup(STDIN_FILENO));
    control::Client other = broker.connect();
    const auto answer = other.call("lease.renew", std::move(payload));
    CHECK_FALSE(answer.has_value());
  }
  check_serves(bystander);
  check_unharmed();
}

TEST_CASE_METHOD(HarmlessTenant,
                 "security: a tenant that floods the broker and reads no replies is disconnected") {
  RawPeer peer(broker.socket());
  const std::string call = call_line("lease.renew", R"({"lease":"1.1","request_id":"r"})");
  std::string many;
  for (int i = 0; i < 500; ++i) many += call;

  const bool dropped = eventually([&] {
    peer.send(many);
    return peer.is_hung_up();
  });

  CHECK(dropped);
  check_unharmed();
}

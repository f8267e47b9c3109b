#include "tests/process/cell/etcd_process.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "common/machine/unique_fd.hpp"

namespace leasehold::testing {
namespace {

using namespace etcd;

constexpr const char* kEtcd = "/usr/bin/etcd";

/// A port of 127.0.0.1 that no program uses now.
int free_port() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

Child shell(const std::string& command, const std::string& log) {
  return Child::start({.argv = {"/bin/sh", "-c", command}, .log_path = log}).value();
}

}  // namespace

bool has_etcd() {
  if (std::filesystem::exists(kEtcd)) return true;
  std::puts("skipped: etcd is not installed; run apt-get install etcd-server");
  return false;
}

/// The gateway of a member makes the name of its Unix socket from host and port.
EtcdProcess::EtcdProcess(Transport transport) : transport_(transport) {
  if (transport == Transport::Tls) {
    make_certificate();
    address_ = fmt::format("https://127.0.0.1:{}", free_port());
  } else {
    address_ = "unix:" + directory_.file("e:1");
  }
  start();
  client_ = std::make_unique<Client>(io_, options());
  const bool is_up =
      eventually([&] { return child_->status() || wait(client_->status(0)).has_value(); });
  if (!is_up || child_->status())
    throw std::runtime_error("etcd does not start: " + file_bytes(directory_.file("log")));
}

void EtcdProcess::make_certificate() {
  ca_ = directory_.file("cert.pem");
  Child made =
      shell(fmt::format(
                "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 "
                "-subj /O=etcd -addext subjectAltName=IP:127.0.0.1 -keyout '{}' -out '{}'",
                directory_.file("key.pem"), ca_),
            directory_.file("openssl.log"));
  REQUIRE(exit_status_of(made) == 0);
}

void EtcdProcess::start() {
  std::string urls = "--listen-client-urls unix://e:1 --advertise-client-urls unix://e:1";
  if (transport_ == Transport::Tls) {
    urls = fmt::format(
        "--listen-client-urls {0} --advertise-client-urls {0} --cert-file cert.pem --key-file "
        "key.pem",
        address_);
  }
  child_.emplace(shell(fmt::format("cd '{}' && exec {} --data-dir data --unsafe-no-fsync {} "
                                   "--listen-peer-urls unix://p:1 "
                                   "--initial-advertise-peer-urls http://127.0.0.1:1 "
                                   "--initial-cluster default=http://127.0.0.1:1",
                                   directory_.path().string(), kEtcd, urls),
                       directory_.file("log")));
}

ClientOptions EtcdProcess::options(std::optional<Login> login) const {
  ClientOptions options{.members = {MemberAddress::parse(address_, Reach::ThisMachine).value()},
                        .login = std::move(login),
                        .call_timeout = kLong,
                        .watch_pause = std::chrono::milliseconds(1)};
  if (!ca_.empty()) options.tls = http::TlsClient::load(ca_, "--etcd-ca").value();
  return options;
}

void EtcdProcess::execute(const Operation& operation) {
  const auto done =
      wait(client_->commit({.conditions = {}, .success = {operation}, .failure = {}}));
  REQUIRE(done);
}

std::optional<KeyValue> EtcdProcess::get(const std::string& key) {
  const auto found = wait(client_->range(KeyRange::one(key)));
  REQUIRE(found);
  return found->entries.empty() ? std::nullopt : std::optional(found->entries.front());
}

void EtcdProcess::change_beside(const Operation& operation) {
  boost::asio::io_context io;
  Client other(io, options());
  Transaction write{.conditions = {}, .success = {operation}, .failure = {}};
  bool has_succeeded = false;
  boost::asio::co_spawn(io, other.commit(std::move(write)),
                        [&](const std::exception_ptr&, const Result<TransactionReply>& reply) {
                          has_succeeded = reply.has_value();
                        });
  io.run();
  REQUIRE(has_succeeded);
}

AgentProcess::AgentProcess(const EtcdProcess& etcd, const Spec& spec)
    : log_path_(spec.state + ".log") {
  std::filesystem::remove(log_path_);
  std::vector<std::string> argv{program_path("leasehold-cell"),
                                "--etcd",
                                etcd.address(),
                                "--cell",
                                "c",
                                "--host",
                                spec.host,
                                "--broker",
                                spec.broker,
                                "--state-dir",
                                spec.state};
  if (!etcd.ca().empty()) argv.insert(argv.end(), {"--etcd-ca", etcd.ca()});
  if (!spec.socket.empty()) argv.insert(argv.end(), {"--listen", spec.socket});
  argv.insert(argv.end(), spec.arguments.begin(), spec.arguments.end());
  ChildConfig config{.argv = std::move(argv), .log_path = log_path_};
  if (!spec.fault.empty()) config.environment.push_back("LEASEHOLD_FAULT=" + spec.fault);
  child_.emplace(Child::start(config).value());
}

void AgentProcess::kill() {
  child_->signal(SIGKILL).value();
  exit_status_of(*child_);
}

int AgentProcess::stop() {
  child_->signal(SIGTERM).value();
  return exit_status_of(*child_);
}

}  // namespace leasehold::testing

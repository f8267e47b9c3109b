/// A real etcd and agents of a cell, for tests.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipc/etcd/client.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {

/// True if etcd is installed; otherwise prints how to install it.
bool has_etcd();

/// Whether clients of an etcd use TLS, on a loopback address, or a Unix socket without it.
enum class Transport : std::uint8_t { Unix, Tls };

/// One member of etcd with its data in a directory of its own.
class EtcdProcess {
 public:
  static constexpr std::chrono::milliseconds kLong{30'000};

  explicit EtcdProcess(Transport transport = Transport::Unix);

  const std::string& address() const { return address_; }
  /// The authority of its certificate; empty without TLS.
  const std::string& ca() const { return ca_; }
  std::string file(const std::string& name) const { return directory_.file(name); }
  Child& child() { return *child_; }
  /// A client without a user.
  etcd::Client& client() { return *client_; }
  /// What such a client needs.
  etcd::ClientOptions options(std::optional<etcd::Login> login = {}) const;

  template <class T>
  Result<T> wait(boost::asio::awaitable<Result<T>> call) {
    std::optional<Result<T>> result;
    boost::asio::co_spawn(io_, std::move(call), [&](std::exception_ptr error, Result<T> done) {
      if (error) std::rethrow_exception(error);
      result = std::move(done);
    });
    io_.restart();
    io_.run();
    return *std::move(result);
  }
  boost::asio::io_context& io() { return io_; }

  void put(const std::string& key, const std::string& value) { execute(etcd::Put{key, value}); }
  void erase(const std::string& key) { execute(etcd::Delete{etcd::KeyRange::one(key)}); }
  void execute(const etcd::Operation& operation);
  std::optional<etcd::KeyValue> get(const std::string& key);
  /// Executes an operation with a client of its own, while `client` waits.
  void change_beside(const etcd::Operation& operation);

 private:
  void make_certificate();
  void start();

  TemporaryDirectory directory_ = TemporaryDirectory::create("etcd").value();
  Transport transport_;
  std::string address_;
  std::string ca_;
  std::optional<Child> child_;
  boost::asio::io_context io_;
  std::unique_ptr<etcd::Client> client_;
};

/// leasehold-cell in the cell c, with a state directory of its own.
class AgentProcess {
 public:
  struct Spec {
    std::string state;  ///< Directory.
    std::string host = "h1";
    std::string broker = "/nonexistent/broker.sock";
    std::string socket;                       ///< For workers; empty: none.
    std::vector<std::string> arguments = {};  ///< More.
    std::string fault = {};                   ///< LEASEHOLD_FAULT; empty: none.
  };
  AgentProcess(const EtcdProcess& etcd, const Spec& spec);

  Child& child() { return *child_; }
  void kill();
  int stop();
  std::string log() const { return file_bytes(log_path_); }
  bool logs(const std::string& text) const {
    return eventually([&] { return log().contains(text); });
  }

 private:
  std::string log_path_;
  std::optional<Child> child_;
};

}  // namespace leasehold::testing

#include "tests/checks/bench/stalled_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "tests/checks/bench/report.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/bench/tenant_pool.hpp"

namespace leasehold::bench {
namespace {

using boost::asio::ip::tcp;

constexpr Duration kStreamsTimeout = std::chrono::minutes(2);
/// Together with a prompt of 4 tokens this is less than a block: nothing is cached, so each id
/// leaves at once.
constexpr std::uint32_t kTokensPerRequest = 10;

/// A listening socket on the loopback device that keeps connections and never answers.
class StalledIndex {
 public:
  StalledIndex() {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~StalledIndex() { (void)stop(); }
  std::string url() const {
    return fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port());
  }
  /// Ends the thread, and returns how many connections were accepted.
  std::size_t stop() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
    return connections_.size();
  }

 private:
  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (error) return;
      connections_.push_back(std::move(socket));
      accept();
    });
  }

  boost::asio::io_context io_;
  tcp::acceptor acceptor_{io_, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0)};
  std::vector<tcp::socket> connections_;  // used only on the thread
  std::thread thread_;
};

/// Appends the times between tokens of one run.
Result<void> run_streams(const SystemConfig& config, const StalledIndexLoad& load,
                         std::vector<double>& gaps_us) {
  const auto system = TRY(System::start(config));
  TRY(system->admit_pool(load.streams));
  TenantPool streams({.broker_socket = system->broker_socket(),
                      .clients = load.streams,
                      .max_tokens = kTokensPerRequest});
  TRY(streams.await_running(load.streams, kStreamsTimeout));
  (void)streams.take_gaps_us();
  std::this_thread::sleep_for(load.measured);
  std::ranges::copy(streams.take_gaps_us(), std::back_inserter(gaps_us));
  return {};
}

}  // namespace

Result<nlohmann::json> measure_stalled_index(const SystemConfig& config,
                                             const StalledIndexLoad& load) {
  std::vector<double> without_us, stalled_us;
  std::size_t calls = 0;
  for (std::uint32_t round = 0; round < load.rounds; ++round) {
    TRY(run_streams(config, load, without_us));
    StalledIndex index;
    SystemConfig with_index = config;
    with_index.worker_options.insert(with_index.worker_options.end(),
                                     {"--kv-index-url", index.url()});
    TRY(run_streams(with_index, load, stalled_us));
    calls += index.stop();
  }
  if (calls == 0) return fail(Errc::TimedOut, "no worker called the index in all rounds");
  const Distribution without = distribution_of(without_us);
  const Distribution stalled = distribution_of(stalled_us);
  return nlohmann::json{
      {"inter_token_us", {{"without", to_json(without)}, {"stalled", to_json(stalled)}}},
      {"p50_ratio", stalled.p50 / without.p50},
      {"p99_ratio", stalled.p99 / without.p99},
      {"calls", calls}};
}

}  // namespace leasehold::bench

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "tests/checks/bench/serve_bench.hpp"
#include "tests/checks/bench/tenant_pool.hpp"

namespace leasehold::bench {
namespace {

using boost::asio::ip::tcp;

constexpr Duration kMeasured = std::chrono::seconds(5);
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
Result<void> run_streams(const SystemConfig& config, std::uint32_t n_streams,
                         std::vector<double>& gaps_us) {
  const auto system = TRY(System::start(config));
  TRY(system->admit_pool(n_streams));
  TenantPool streams({.broker_socket = system->broker_socket(),
                      .clients = n_streams,
                      .max_tokens = kTokensPerRequest});
  TRY(streams.await_running(n_streams, kStreamsTimeout));
  (void)streams.take_gaps_us();
  std::this_thread::sleep_for(kMeasured);
  std::ranges::copy(streams.take_gaps_us(), std::back_inserter(gaps_us));
  return {};
}

}  // namespace

Result<nlohmann::json> measure_stalled_index(const SystemConfig& config, std::uint32_t n_streams,
                                             std::uint32_t rounds) {
  constexpr const char *kWithout = "inter_token_us.without", *kStalled = "inter_token_us.stalled";
  Samples samples;
  std::size_t calls = 0;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    TRY(run_streams(config, n_streams, samples[kWithout]));
    StalledIndex index;
    SystemConfig with_index = config;
    with_index.worker_options.insert(with_index.worker_options.end(),
                                     {"--kv-index-url", index.url()});
    TRY(run_streams(with_index, n_streams, samples[kStalled]));
    calls += index.stop();
  }
  if (calls == 0) return fail(Errc::TimedOut, "no worker called the index in all rounds");
  const FigureRow rows[] = {{kWithout},
                            {kStalled},
                            {"p50_ratio", Statistic::Median, kStalled, kWithout},
                            {"p99_ratio", Statistic::P99, kStalled, kWithout}};
  nlohmann::json json{{"calls", calls}};
  add_figures(json, samples, rows);
  return json;
}

}  // namespace leasehold::bench

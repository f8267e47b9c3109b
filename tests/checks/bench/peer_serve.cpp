#include "tests/checks/bench/peer_serve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "kernels/model/config.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "tests/checks/bench/completion_round.hpp"
#include "tests/checks/bench/peer_server.hpp"
#include "tests/checks/bench/system.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/peer/peer_programs.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr const char* kServedTenant = "peer-serve";

/// Our broker and worker, with an API key.
struct OurServer {
  std::unique_ptr<System> system;
  CompletionServer server;
  std::vector<std::string> options;

  static Result<OurServer> start(boost::asio::io_context& io, const PeerServeConfig& config,
                                 std::uint32_t streams) {
    const GgufFile file = TRY(GgufFile::open(config.model_path));
    OurServer ours;
    ours.server = {.port = 0, .key = {}, .model = {}};
    ours.server.model = TRY(read_config(file)).name;
    ours.server.port = TRY(free_port(io));
    ours.options = {"--http", fmt::format("127.0.0.1:{}", ours.server.port)};
    if (config.threads > 0)
      ours.options.insert(ours.options.end(), {"--threads", std::to_string(config.threads)});
    ours.system = TRY(System::start({.bin_dir = config.bin_dir,
                                     .model_path = config.model_path,
                                     .threads = 0,  // cores are not partitioned, as for the peer
                                     .broker_options = {},
                                     .worker_options = ours.options}));
    TRY(ours.system->admit(kServedTenant, 1, streams));
    ours.server.processes = {ours.system->broker_pid(), ours.system->worker_pid()};
    ours.server.key = TRY(ours.system->create_key(kServedTenant));
    return ours;
  }
};

double cpu_time_ns(const CompletionServer& server) {
  double sum = 0;
  for (const pid_t pid : server.processes) sum += process_time_ns(pid);
  return sum;
}

/// Measures rounds with prompts that no server has seen.
class Rounds {
 public:
  Rounds(boost::asio::io_context& io, const PeerServeConfig& config) : io_(io), config_(config) {}

  Result<void> warm_up(const CompletionServer& server) {
    const Prompts prompts = next_prompts(1);
    TRY(run_round(io_, server, prompts, config_.generated_tokens));
    return {};
  }

  Result<Json> measure(const CompletionServer& ours, const CompletionServer& peer,
                       std::uint32_t streams) {
    std::vector<Figures> our_figures;
    std::vector<Figures> peer_figures;
    for (std::uint32_t i = 0; i < config_.rounds; ++i) {
      const Prompts prompts = next_prompts(streams);
      our_figures.push_back(TRY(figures(ours, prompts)));
      peer_figures.push_back(TRY(figures(peer, prompts)));
    }
    const Figures our_medians = medians_of(our_figures);
    const Figures peer_medians = medians_of(peer_figures);
    return Json{{"ours", our_medians},
                {"peer", peer_medians},
                {"ratio", ratios_of(our_medians, peer_medians)}};
  }

 private:
  Prompts next_prompts(std::uint32_t streams) {
    const std::uint64_t first = made_;
    made_ += streams;
    return make_prompts(streams, config_.prompt_tokens, first);
  }
  Result<Figures> figures(const CompletionServer& server, const Prompts& prompts) {
    const double before_ns = cpu_time_ns(server);
    const auto times = TRY(run_round(io_, server, prompts, config_.generated_tokens));
    const auto tokens = static_cast<double>(prompts.size() * config_.generated_tokens);
    Figures figures = figures_of(times);
    figures["cpu_ms_per_token"] = (cpu_time_ns(server) - before_ns) / 1e6 / tokens;
    return figures;
  }

  boost::asio::io_context& io_;
  const PeerServeConfig& config_;
  std::uint64_t made_ = 0;
};

Result<Json> measure_streams(const PeerServeConfig& config, const PeerPrograms& programs,
                             std::uint32_t streams) {
  boost::asio::io_context io;
  const OurServer ours = TRY(OurServer::start(io, config, streams));
  const PeerServer server =
      TRY(PeerServer::start(io, programs,
                            {.model_path = config.model_path,
                             .slots = streams,
                             .slot_context = config.prompt_tokens + config.generated_tokens,
                             .threads = config.threads}));
  const CompletionServer peer{.port = server.port(),
                              .key = "none",
                              .model = ours.server.model,
                              .processes = {server.pid()}};
  Rounds rounds(io, config);
  TRY(rounds.warm_up(ours.server));
  TRY(rounds.warm_up(peer));
  Json json = TRY(rounds.measure(ours.server, peer, streams));
  json["peer_command"] = server.command();
  json["worker_options"] = fmt::format("{}", fmt::join(ours.options, " "));
  return json;
}

}  // namespace

Result<Json> measure_peer_serve(const PeerServeConfig& config) {
  const auto programs = TRY(PeerPrograms::open(config.peer_dir, {kPeerServer}));
  Json report{{"rounds", config.rounds},
              {"prompt_tokens", config.prompt_tokens},
              {"generated_tokens", config.generated_tokens}};
  report["version"] = TRY(programs.version_of(kPeerServer));
  for (const std::uint32_t streams : config.streams)
    report[fmt::format("{}_streams", streams)] = TRY(measure_streams(config, programs, streams));
  return Json{{"peer_serve", std::move(report)}};
}

std::string peer_serve_text(const Json& report) {
  const Json& all = report.at("peer_serve");
  cli::Table table{
      .columns = {{"STREAMS"}, {"FIGURE"}, {"OURS", true}, {"PEER", true}, {"RATIO", true}},
      .rows = {}};
  std::string commands;
  for (const auto& [name, run] : all.items()) {
    if (!run.is_object()) continue;
    for (const auto& [figure, ratio] : run.at("ratio").items())
      table.rows.push_back({name, figure,
                            fmt::format("{:.2f}", run.at("ours").at(figure).get<double>()),
                            fmt::format("{:.2f}", run.at("peer").at(figure).get<double>()),
                            fmt::format("{:.2f}", ratio.get<double>())});
    commands += fmt::format("{}: leasehold-worker {}; {}\n", name,
                            run.at("worker_options").get<std::string>(),
                            run.at("peer_command").get<std::string>());
  }
  return cli::render(table) +
         fmt::format(
             "Medians of {} rounds; prompts of {} tokens, {} generated per stream; the peer "
             "is llama.cpp {}.\n",
             all.at("rounds").get<std::uint32_t>(), all.at("prompt_tokens").get<std::uint32_t>(),
             all.at("generated_tokens").get<std::uint32_t>(),
             all.at("version").get<std::string>()) +
         commands;
}

}  // namespace leasehold::bench

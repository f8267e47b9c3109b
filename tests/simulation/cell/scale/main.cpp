// Prints what large cells cost, as one JSON object.
//
//   leasehold-cell-scale [--check] [--runs N]
//
// --check: exit code 1 when a count or a simulated time is above its limit. Times of this CPU are
// printed and not checked.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/simulation/cell/scale/load.hpp"
#include "tests/simulation/cell/scale/settlement.hpp"

namespace leasehold::cell::scale {
namespace {

using Json = nlohmann::json;

/// Nearest-rank quantiles.
Json distribution(std::vector<double> samples) {
  std::ranges::sort(samples);
  const auto at = [&](std::size_t percent) {
    return samples[(samples.size() * percent + 99) / 100 - 1];
  };
  return {{"n", samples.size()}, {"p50", at(50)}, {"p99", at(99)}, {"max", samples.back()}};
}

Json settlement(int hosts, int runs) {
  std::vector<double> times, writes, refused, reads;
  int undivided = 0;
  for (int seed = 1; seed <= runs; ++seed) {
    const Settlement each = settle(static_cast<std::uint64_t>(seed), hosts);
    times.push_back(std::chrono::duration<double, std::milli>(each.time).count());
    writes.push_back(static_cast<double>(each.writes));
    refused.push_back(static_cast<double>(each.refused));
    reads.push_back(static_cast<double>(each.reads));
    undivided += !each.is_divided;
  }
  return {{"settled_ms", distribution(times)},
          {"writes", distribution(writes)},
          {"refused_writes", distribution(refused)},
          {"reads", distribution(reads)},
          {"undivided", undivided}};
}

Json load() {
  const CellSize size;
  const Load load = load_of(size);
  return {{"writes_per_s", load.writes_per_s},
          {"loss_writes_per_s", load.loss_writes_per_s},
          {"watch_bytes_per_s_of_host", load.watch_bytes_per_s},
          {"watch_bytes_per_s_of_gateway", load.gateway_bytes_per_s},
          {"etcd_mib", load.etcd_mib},
          {"placement_ms", placement_ms(size.hosts)}};
}

struct Bar {
  const char* pointer;
  double limit;
};
constexpr Bar kBars[] = {{"/scale/writes_per_s", 2'000},
                         {"/scale/loss_writes_per_s", 4'000},
                         {"/scale/watch_bytes_per_s_of_host", 1'024},
                         {"/scale/etcd_mib", 1'024},
                         {"/settle_64_hosts/settled_ms/p99", 2'000},
                         {"/settle_64_hosts/writes/p99", 200},
                         {"/settle_64_hosts/undivided", 0}};

int missed_bars(const Json& figures) {
  int missed = 0;
  for (const Bar& bar : kBars) {
    const double figure = figures.at(Json::json_pointer(bar.pointer)).get<double>();
    if (figure <= bar.limit) continue;
    std::fprintf(stderr, "%s is %g, and at most %g are allowed\n", bar.pointer, figure, bar.limit);
    ++missed;
  }
  return missed;
}

}  // namespace
}  // namespace leasehold::cell::scale

int main(int argc, char** argv) {
  using namespace leasehold::cell::scale;
  bool is_check = false;
  int runs = 100;
  CLI::App app("Counts what large cells cost their etcd");
  app.add_flag("--check", is_check, "Fail when a count is above its limit");
  app.add_option("--runs", runs, "Number of times that hosts settle; the seeds are 1 to N")
      ->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);
  Json figures{{"scale", load()}};
  for (const int hosts : {2, 8, 64})
    figures["settle_" + std::to_string(hosts) + "_hosts"] = settlement(hosts, runs);
  std::printf("%s\n", figures.dump(2).c_str());
  return is_check && missed_bars(figures) > 0 ? 1 : 0;
}

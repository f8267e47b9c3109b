// Prints what large cells cost, as one JSON object.
//
//   leasehold-cell-scale [--check]
//
// --check: exit code 1 when a count is above its limit. Times of this CPU are printed and not
// checked.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/simulation/cell/scale/load.hpp"

namespace leasehold::cell::scale {
namespace {

using Json = nlohmann::json;

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
                         {"/scale/etcd_mib", 1'024}};

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
  CLI::App app("Counts what large cells cost their etcd");
  app.add_flag("--check", is_check, "Fail when a count is above its limit");
  CLI11_PARSE(app, argc, argv);
  const Json figures{{"scale", load()}};
  std::printf("%s\n", figures.dump(2).c_str());
  return is_check && missed_bars(figures) > 0 ? 1 : 0;
}

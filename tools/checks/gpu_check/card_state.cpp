// Records clocks, power and temperature of the GPU, so that figures of two runs can be compared.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tools/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

constexpr const char* kQuery =
    "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active";
constexpr std::size_t kFields = 5;

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ',');) {
    field.erase(0, field.find_first_not_of(' '));
    field.erase(std::min(field.find_last_not_of(" \n") + 1, field.size()));
    fields.push_back(field);
  }
  return fields;
}

}  // namespace

void record_card_state(const Settings& settings, StageReport& report, const Card& card,
                       const std::string& when) {
  const std::string log = settings.out_dir + "/nvidia-smi.log";
  (void)std::remove(log.c_str());  // a child appends to its log
  // Selects the GPU by UUID, because nvidia-smi also counts GPUs that CUDA_VISIBLE_DEVICES hides
  // from this process.
  const Result<int> status = run_to_end(
      {.argv = {"/usr/bin/env", "nvidia-smi", "--id=" + card.context().uuid().value_or(""), kQuery,
                "--format=csv,noheader,nounits"},
       .log_path = log});
  const std::string what = "clocks and power " + when;
  const std::vector<std::string> fields = fields_of(text_of_file(log));
  (void)std::remove(log.c_str());
  if (!status || *status != 0 || fields.size() != kFields)
    return report.measured(what, "not reported by nvidia-smi");  // a note, not a check
  report.numbers()["card_state"].push_back({{"when", when},
                                            {"sm_mhz", fields[0]},
                                            {"memory_mhz", fields[1]},
                                            {"watt", fields[2]},
                                            {"celsius", fields[3]},
                                            {"throttle", fields[4]}});
  report.measured(what, fmt::format("SM {} MHz, memory {} MHz, {} W, {} C, throttle {}", fields[0],
                                    fields[1], fields[2], fields[3], fields[4]));
}

}  // namespace leasehold::gpu_check

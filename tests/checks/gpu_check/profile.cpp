// Runs a few layers of real shapes in plain launches, for a profiler. Measures nothing itself.
#include <fmt/format.h>

#include <cstdio>

#include "tests/checks/gpu_check/bench_cases.hpp"
#include "tests/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

constexpr std::uint32_t kLayers = 2;
constexpr std::uint32_t kPrompt = 512;
constexpr std::uint32_t kBatches[] = {1, 8, 32};

struct ProfileCase {
  const char* shape;
  Mix mix;
  Arithmetic arithmetic;
};
constexpr ProfileCase kCases[] = {{"0.5b", Mix::Q8, Arithmetic::Int8},
                                  {"0.5b", Mix::Q8, Arithmetic::F16},
                                  {"7b", Mix::Q8, Arithmetic::Int8},
                                  {"7b", Mix::Q8, Arithmetic::F16},
                                  {"7b", Mix::Q4KM, Arithmetic::Int8}};

Result<void> run_case(const Settings& settings, Card& card, const ProfileCase& one) {
  make_model::ModelShape shape = TRY(make_model::named_shape(one.shape));
  shape.layers = kLayers;
  const ShapeFile file = TRY(write_shape(shape, one.mix, settings.out_dir + "/shape.gguf"));
  const auto model =
      TRY(BenchModel::load(card, {.rows = rows_of(one.arithmetic), .graphs = cuda::GraphUse::None},
                           {.model_path = file.path,
                            .arithmetic = one.arithmetic,
                            .max_rows = kPrompt,
                            .sequences = 32,
                            .positions = kPrompt + 16}));
  for (const std::uint32_t batch : kBatches) TRY(model->decode(batch, kPrompt));
  TRY(model->prefill(0, kPrompt));
  (void)std::remove(file.path.c_str());
  return {};
}

}  // namespace

Result<void> run_profile(const Settings& settings, StageReport& report) {
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  for (const ProfileCase& one : kCases) TRY(run_case(settings, *card, one));
  report.measured("work for a profiler", fmt::format("{} models", std::size(kCases)));
  return {};
}

}  // namespace leasehold::gpu_check

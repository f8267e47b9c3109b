#include "tools/checks/gpu_check/bench_model.hpp"

#include "tools/checks/bench/statistics.hpp"

namespace leasehold::gpu_check {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// A token that does not end a text. The token differs by sequence, so that each sequence reads
/// another embedding row.
TokenId some_token(std::uint32_t i, const ModelConfig& config) {
  return static_cast<TokenId>(3 + (i * 37u) % (config.n_vocab - 3));
}

}  // namespace

Result<std::unique_ptr<BenchModel>> BenchModel::load(Card& card, cuda::CudaOptions options,
                                                     LocalOptions local) {
  auto placement =
      std::make_unique<CardPlacement>(card, options, CardPlacement::WeightsSource::Synthetic);
  local.placement = placement.get();
  std::unique_ptr<LocalModel> model = TRY(LocalModel::load(std::move(local)));
  return std::unique_ptr<BenchModel>(new BenchModel(std::move(placement), std::move(model)));
}

Result<void> BenchModel::decode(std::uint32_t batch, std::uint32_t context) {
  std::vector<LocalRow> rows;
  for (std::uint32_t s = 0; s < batch; ++s) {
    model_->restart(s, context - 1);
    rows.push_back({.sequence = s, .token = some_token(s, model_->config())});
  }
  return model_->forward(rows);
}

Result<void> BenchModel::prefill(std::uint32_t from, std::uint32_t count) {
  model_->restart(0, from);
  std::vector<LocalRow> rows;
  for (std::uint32_t i = 0; i < count; ++i)
    rows.push_back({.sequence = 0,
                    .token = some_token(from + i, model_->config()),
                    .wants_logits = i + 1 == count});
  return model_->forward(rows);
}

Result<void> BenchModel::prefill_beside(std::uint32_t count, std::uint32_t context) {
  model_->restart(0, context - 1);
  model_->restart(1, 0);
  std::vector<LocalRow> rows{{.sequence = 0, .token = some_token(0, model_->config())}};
  for (std::uint32_t i = 0; i < count; ++i)
    rows.push_back(
        {.sequence = 1, .token = some_token(i, model_->config()), .wants_logits = i + 1 == count});
  return model_->forward(rows);
}

Result<double> median_seconds(const Repeats& repeats, const std::function<Result<void>()>& once) {
  for (int i = 0; i < repeats.warm; ++i) TRY(once());
  std::vector<double> seconds;
  const auto begun = SteadyClock::now();
  for (int i = 0; i < repeats.count && (i < 3 || SteadyClock::now() - begun < repeats.max_duration);
       ++i) {
    const auto from = SteadyClock::now();
    TRY(once());
    seconds.push_back(std::chrono::duration<double>(SteadyClock::now() - from).count());
  }
  return bench::median_of(std::move(seconds));
}

}  // namespace leasehold::gpu_check

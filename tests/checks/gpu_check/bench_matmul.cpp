// Compares one matmul per weight format, arithmetic and batch with the rate of copying. The
// comparison shows which formats are limited by the conversion of their weights instead of by
// memory, and where int8 is as fast as halves.
#include <fmt/format.h>

#include "kernels/cuda/plan/matmul_plan.hpp"
#include "kernels/quant/group_format.hpp"
#include "tests/checks/gpu_check/bench_cases.hpp"

namespace leasehold::gpu_check {
namespace {

/// Random half bits with limited exponents: there is no NaN, and sums stay finite.
constexpr Card::Filling kSmallHalves{
    .keep = 0x83FF'83FF'83FF'83FF, .set = 0x2400'2400'2400'2400, .seed = 11};

/// A matrix like gate or up of a 7B shape, and memory for launches with up to `max_batch` rows.
class MatmulBench {
 public:
  static Result<MatmulBench> create(Card& card, bool is_tiny, std::uint32_t max_batch) {
    MatmulBench bench(card, is_tiny ? 128 : 11008, is_tiny ? 512 : 4096);
    TRY(bench.allocate(is_tiny, max_batch));
    return bench;
  }

  /// Seconds per launch. Each launch reads another copy of the matrix, so that no cache holds it.
  Result<double> seconds(TensorType type, Arithmetic arithmetic, std::uint32_t batch,
                         const Repeats& repeats) {
    const device::DeviceStep step{
        .n_rows = batch, .n_sequences = 1, .n_logit_rows = 0, .longest = 1};
    TRY(card_->store(cuda::device_address(step_.data()), std::as_bytes(std::span(&step, 1))));
    const std::uint64_t copies = weights_.size_bytes() / matrix_bytes(type);
    const auto run_all = [&]() -> Result<void> {
      for (std::uint64_t i = 0; i + 1 < copies; ++i)
        TRY(card_->begin(launch(type, arithmetic, batch, i)));
      return card_->run(launch(type, arithmetic, batch, copies - 1));
    };
    return TRY(median_seconds(repeats, run_all)) / static_cast<double>(copies);
  }

  std::uint64_t matrix_bytes(TensorType type) const {
    return std::uint64_t{n_out_} * row_size_bytes(type, n_in_);
  }
  std::string shape() const { return fmt::format("{} x {}", n_out_, n_in_); }

 private:
  MatmulBench(Card& card, std::uint32_t n_out, std::uint32_t n_in)
      : card_(&card), n_out_(n_out), n_in_(n_in) {}

  Result<void> allocate(bool is_tiny, std::uint32_t max_batch) {
    const int sms = TRY(card_->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    const int shared = TRY(card_->attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    properties_ = {.n_sms = static_cast<std::uint32_t>(sms),
                   .max_shared_bytes = static_cast<std::uint32_t>(shared)};
    const auto make = [&](std::size_t size_bytes) {
      return cuda::DeviceBuffer::allocate(card_->context(), cuda::aligned(size_bytes));
    };
    weights_ = TRY(make(std::size_t{is_tiny ? 1u : 512u} << 20));
    step_ = TRY(make(sizeof(device::DeviceStep)));
    halves_ = TRY(make(device::tile_halves(max_batch, n_in_) * sizeof(std::uint16_t)));
    scales_ = TRY(make(max_batch * sizeof(float)));
    rounded_ = TRY(make(device::int8_rows_bytes(max_batch, n_in_)));
    out_ = TRY(make(std::size_t{max_batch} * n_out_ * sizeof(float)));
    partials_ = TRY(make(cuda::max_split_bytes(properties_)));
    counters_ = TRY(make(cuda::counter_count(properties_) * sizeof(std::uint32_t)));
    for (const cuda::DeviceBuffer* one : {&weights_, &halves_, &rounded_})
      TRY(card_->fill(cuda::device_address(one->data()), one->size_bytes(), kSmallHalves));
    for (const cuda::DeviceBuffer* one : {&scales_, &counters_})
      TRY(card_->clear(cuda::device_address(one->data()), one->size_bytes()));
    return {};
  }

  cuda::KernelLaunch launch(TensorType type, Arithmetic arithmetic, std::uint32_t batch,
                            std::uint64_t copy) const {
    device::KernelGate gate = card_->gate();
    gate.step = reinterpret_cast<const device::DeviceStep*>(step_.data());
    const cuda::MatmulOperands operands{
        .gate = gate,
        .type = type,
        .layout = arithmetic == Arithmetic::Int8 ? MatrixLayout::RowGroups : MatrixLayout::Rows,
        .n_out = n_out_,
        .n_in = n_in_,
        .weights = weights_.data() + copy * matrix_bytes(type),
        .out = reinterpret_cast<float*>(out_.data()),
        .n_results = batch};
    const cuda::MatmulScratch scratch{
        .tiles = {.halves = reinterpret_cast<std::uint16_t*>(halves_.data()),
                  .scales = reinterpret_cast<float*>(scales_.data()),
                  .n_in = n_in_},
        .rounded = device::int8_rows_at(rounded_.data(), batch, n_in_, block_shape(type).elements),
        .rows_are_prepared = true,
        .partials = reinterpret_cast<float*>(partials_.data()),
        .counters = reinterpret_cast<std::uint32_t*>(counters_.data())};
    return cuda::plan_matmul(operands, scratch, properties_).back();
  }

  Card* card_;
  std::uint32_t n_out_;
  std::uint32_t n_in_;
  cuda::DeviceProperties properties_;
  cuda::DeviceBuffer weights_;
  cuda::DeviceBuffer step_;
  cuda::DeviceBuffer halves_;
  cuda::DeviceBuffer scales_;
  cuda::DeviceBuffer rounded_;
  cuda::DeviceBuffer out_;
  cuda::DeviceBuffer partials_;
  cuda::DeviceBuffer counters_;
};

/// The types of weights that tensor cores multiply.
std::vector<TensorType> half_types() {
  std::vector<TensorType> types;
  for (std::uint32_t i = 0; i < std::size(kTensorTypeRows); ++i) {
    const auto type = static_cast<TensorType>(i);
    if (kTensorTypeRows[i].block.size_bytes > 0 && type != TensorType::F32) types.push_back(type);
  }
  return types;
}

struct MatmulCase {
  TensorType type;
  Arithmetic arithmetic;
  std::uint32_t batch = 0;
};

Result<void> time_matmul(StageReport& report, const Rates& rates, MatmulBench& bench,
                         const MatmulCase& one, const Repeats& repeats) {
  const auto& [type, arithmetic, batch] = one;
  const double seconds = TRY(bench.seconds(type, arithmetic, batch, repeats));
  const double bytes_per_s = static_cast<double>(bench.matrix_bytes(type)) / seconds;
  const double share = bytes_per_s / rates.copy_bytes_per_s;
  report.add_row("matmul",
                 {{"type", name(type)},
                  {"arithmetic", name(arithmetic)},
                  {"batch", batch},
                  {"us", seconds * 1e6},
                  {"gb_per_s", bytes_per_s / 1e9},
                  {"share_of_copying", share}},
                 judged(fmt::format("matmul {} {} in {}, batch {}", name(type), bench.shape(),
                                    name(arithmetic), batch),
                        fmt::format("{:.1f} us, {:.0f} GB/s of weights, {:.0f} % of copying",
                                    seconds * 1e6, bytes_per_s / 1e9, share * 100),
                        {}));
  return {};
}

}  // namespace

Result<void> bench_matmul(const Settings& settings, StageReport& report, Card& card,
                          const Rates& rates) {
  const std::vector<std::uint32_t> batches =
      settings.tiny ? std::vector<std::uint32_t>{1, 9} : std::vector<std::uint32_t>{1, 8, 32, 64};
  const Repeats repeats = settings.tiny ? Repeats{.warm = 0, .count = 1} : Repeats{.count = 9};
  MatmulBench bench = TRY(MatmulBench::create(card, settings.tiny, batches.back()));
  for (const TensorType type : half_types()) {
    for (const Arithmetic arithmetic : {Arithmetic::F16, Arithmetic::Int8}) {
      if (arithmetic == Arithmetic::Int8 && !has_row_groups(type)) continue;
      for (const std::uint32_t batch : batches)
        TRY(time_matmul(report, rates, bench, {type, arithmetic, batch}, repeats));
    }
  }
  return {};
}

}  // namespace leasehold::gpu_check

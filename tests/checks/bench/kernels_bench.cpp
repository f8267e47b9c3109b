#include "tests/checks/bench/kernels_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/random.hpp"
#include "ipc/region/memory_object.hpp"
#include "ipc/region/region_mapper.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/quant/group_format.hpp"
#include "tests/checks/bench/machine_limits.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/local_model/local_leases.hpp"
#include "worker/engine/worker_gates.hpp"

namespace leasehold::bench {
namespace {

/// Below this share of its limit, a matmul is limited by other instructions.
constexpr double kShareOfLimited = 0.6;
constexpr double kGiga = 1e9;

struct Timing {
  double seconds = 0;  ///< Of one launch.
  double unit_seconds = 0;
};
using Case = std::pair<TensorType, std::uint32_t>;  // the format, and rows of the batch

Result<TensorType> type_from_name(const std::string& text) {
  for (std::uint32_t i = 0; i < std::size(kTensorTypeRows); ++i) {
    const auto type = static_cast<TensorType>(i);
    if (kTensorTypeRows[i].block.size_bytes > 0 && name(type) == text) return type;
  }
  return fail(Errc::BadRequest,
              "no tensor type is named " + text + "; use F16 or Q4_K, for example");
}

Result<std::vector<TensorType>> types_of(const KernelsBenchConfig& config) {
  std::vector<TensorType> types;
  for (const std::string& text : config.formats) types.push_back(TRY(type_from_name(text)));
  for (std::uint32_t i = 0; config.formats.empty() && i < std::size(kTensorTypeRows); ++i)
    if (kTensorTypeRows[i].block.size_bytes > 0) types.push_back(static_cast<TensorType>(i));
  for (const TensorType type : types)
    if (config.n_in % block_shape(type).elements != 0)
      return fail(Errc::BadRequest, fmt::format("rows of {} elements are not whole blocks of {}; "
                                                "use a multiple of 256",
                                                config.n_in, name(type)));
  return types;
}

/// Fills memory with bytes that are small numbers when read as halves, as floats or as exponents of
/// MXFP4, but no denormal ones, with which some processors compute slowly.
void fill_small(std::byte* to, std::size_t size_bytes) {
  SeededRandom random(7);
  std::vector<std::uint64_t> pattern(4096);
  for (std::uint64_t& word : pattern)
    word = (random() & 0x83FF'83FF'83FF'83FFu) | 0x2420'2420'2420'2420u;
  const auto bytes = std::as_bytes(std::span(pattern));
  for (std::size_t at = 0; at < size_bytes; at += bytes.size())
    std::copy_n(bytes.begin(), std::min(bytes.size(), size_bytes - at), to + at);
}

BackendLimits limits_of(const KernelsBenchConfig& config) {
  BackendLimits limits;
  limits.max_rows = std::ranges::max(config.rows);
  limits.max_context = KvLayout::kBlockTokens;
  limits.n_heads = 1;
  limits.head_dim = 64;
  limits.max_width = std::max(config.n_in, config.n_out);
  limits.attention_scratch_bytes = 1u << 20;
  limits.scratch_bytes = std::size_t{limits.max_rows} * (config.n_in + config.n_out) * 4 + 4096;
  return limits;
}

constexpr LeaseId kLease{.slot = 0, .generation = 1};

/// A backend whose gates are open, and leased memory that holds copies of a matrix.
class MatmulRig {
 public:
  static Result<std::unique_ptr<MatmulRig>> create(const KernelsBenchConfig& config,
                                                   SimdPath path) {
    LocalLeases leases = TRY(LocalLeases::create(1));
    leases.table.grant(kLease, {});
    const std::size_t size_bytes = config.memory_mib << 20;
    MemoryObject object = TRY(MemoryObject::create({.name = "bench", .size_bytes = size_bytes}));
    Mapping mapping =
        TRY(map_host_memory(std::move(object).release(), size_bytes, MapAccess::ReadWrite));
    std::unique_ptr<MatmulRig> rig(new MatmulRig(config, std::move(leases), std::move(mapping)));
    TRY(rig->make_backend(path));
    return rig;
  }

  std::span<const std::byte> memory() const { return memory_; }

  /// The mean over as many launches as there are copies of the matrix.
  Result<Timing> time(TensorType type, std::uint32_t rows) {
    const std::uint64_t copies = memory_.size() / matrix_bytes(type);
    if (copies == 0)
      return fail(Errc::BadRequest, "the matrix is larger than the memory; use a smaller one");
    // With many rows arithmetic is the limit, so one copy is enough.
    const std::uint64_t launches = rows > 64 ? 1 : copies;
    const std::uint64_t units = units_run();
    const double begin_ns = work_time_ns(config_.threads);
    for (std::uint64_t i = 0; i < launches; ++i) TRY(launch(type, rows, i % copies));
    const double seconds = (work_time_ns(config_.threads) - begin_ns) / kGiga;
    const auto done = static_cast<double>(units_run() - units);
    return Timing{seconds / static_cast<double>(launches), seconds * config_.threads / done};
  }

  std::uint64_t matrix_bytes(TensorType type) const {
    if (!has_row_groups(type)) return config_.n_out * row_size_bytes(type, config_.n_in);
    return row_groups(config_.n_out) * row_group_bytes(type, config_.n_in);
  }

 private:
  MatmulRig(const KernelsBenchConfig& config, LocalLeases leases, Mapping mapping)
      : config_(config),
        leases_(std::move(leases)),
        memory_(mapping.data(), mapping.size_bytes()),
        rows_(std::ranges::max(config.rows), RowRef{0, 0}) {
    fill_small(mapping.data(), mapping.size_bytes());
    weights_.emplace(std::move(mapping), MapAccess::ReadWrite);
  }

  Result<void> make_backend(SimdPath path) {
    auto gates = make_gates({.worker = WorkerId{0},
                             .table = &leases_.reader,
                             .segment = &leases_.writer,
                             .stops = &stops_},
                            0, config_.threads);
    backend_ = TRY(CpuBackend::create(limits_of(config_), std::move(gates), path));
    // Aligned to cache lines, as in a worker: loads that cross lines take twice as long.
    x_ = scratch(rows_.size() * config_.n_in);
    out_ = scratch(rows_.size() * config_.n_out);
    std::fill_n(x_, rows_.size() * config_.n_in, 0.25F);
    return {};
  }

  float* scratch(std::size_t n) {
    return reinterpret_cast<float*>(backend_->allocate_scratch(n * sizeof(float)));
  }

  Result<void> launch(TensorType type, std::uint32_t rows, std::uint64_t copy) {
    GateSet gates(++step_, stops_, listener_);
    gates.add_engine_lease(TRY(leases_.reader.dependency(kLease)));
    gates.add_sequence({});
    const WeightMatrix weight{
        .type = type,
        .layout = has_row_groups(type) ? MatrixLayout::RowGroups : MatrixLayout::Rows,
        .n_out = config_.n_out,
        .n_in = config_.n_in,
        .data = weights_->base() + static_cast<std::ptrdiff_t>(copy * matrix_bytes(type))};
    backend_->matmul({.gates = &gates, .rows = std::span(rows_).first(rows)},
                     {.site = LaunchSite::FfnUp, .weight = weight, .x = x_, .out = out_});
    return {};
  }

  std::uint64_t units_run() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t units : backend_->units_run()) sum += units;
    return sum;
  }

  KernelsBenchConfig config_;
  LocalLeases leases_;  // a live lease
  StopFlags stops_ = {};
  NullRefusalListener listener_;
  std::optional<LeasedMapping> weights_;
  std::span<const std::byte> memory_;  // the memory of weights_
  std::vector<RowRef> rows_;
  std::unique_ptr<CpuBackend> backend_;
  float* x_ = nullptr;    // [rows, n_in], scratch
  float* out_ = nullptr;  // [rows, n_out], scratch
  std::uint64_t step_ = 0;
};

/// The work of a matmul, and the rate at which registers can do it.
struct Work {
  double bytes;
  double macs;
  double macs_per_s;  ///< 0: unknown.
  std::string_view arithmetic;
};

nlohmann::json figures_of(const Timing& timing, const Work& work, double bytes_per_s) {
  const auto [bytes, macs, macs_per_s, arithmetic] = work;
  const double memory_s = bytes_per_s > 0 ? bytes / bytes_per_s : 0;
  const double arithmetic_s = macs_per_s > 0 ? macs / macs_per_s : 0;
  const double share = std::max(memory_s, arithmetic_s) / timing.seconds;
  const std::string_view limit = memory_s > arithmetic_s ? "memory" : arithmetic;
  return {{"gb_per_s", bytes / timing.seconds / kGiga},
          {"gmac_per_s", macs / timing.seconds / kGiga},
          {"share_of_limit", share},
          {"limited_by", share < kShareOfLimited ? "other instructions" : limit},
          {"unit_us", timing.unit_seconds * 1e6}};
}

/// The best timing of each case, and the best limits, over the rounds.
struct MeasuredKernels {
  MachineLimits limits;
  std::map<Case, Timing> timings;
};

Result<MeasuredKernels> measure(const KernelsBenchConfig& config, SimdPath path, MatmulRig& rig,
                                const std::vector<TensorType>& types) {
  ThreadPool pool(config.threads);
  MeasuredKernels best;
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    best.limits = best.limits.max(measure_limits(pool, path, rig.memory()));
    for (const TensorType type : types)
      for (const std::uint32_t rows : config.rows) {
        const Timing timing = TRY(rig.time(type, rows));
        const auto [at, is_first] = best.timings.try_emplace({type, rows}, timing);
        if (!is_first && timing.seconds < at->second.seconds) at->second = timing;
      }
  }
  return best;
}

Result<nlohmann::json> measure_path(const KernelsBenchConfig& config, SimdPath path,
                                    const std::vector<TensorType>& types) {
  const auto rig = TRY(MatmulRig::create(config, path));
  const auto [limits, timings] = TRY(measure(config, path, *rig, types));
  const std::string_view products = name(byte_products(path));
  nlohmann::json matmul;
  for (const auto& [each, timing] : timings) {
    const auto [type, rows] = each;
    const bool is_int8 = has_row_groups(type);
    const Work work{.bytes = static_cast<double>(rig->matrix_bytes(type)),
                    .macs = static_cast<double>(config.n_out) * config.n_in * rows,
                    .macs_per_s = is_int8 ? limits.byte_macs_per_s : limits.fma_per_s,
                    .arithmetic = is_int8 ? products : "fma"};
    matmul[std::string(name(type))][std::to_string(rows)] =
        figures_of(timing, work, limits.bytes_per_s);
  }
  return nlohmann::json{{"byte_products", products},
                        {"limits",
                         {{"gb_per_s", limits.bytes_per_s / kGiga},
                          {"fma_gmac_per_s", limits.fma_per_s / kGiga},
                          {"byte_gmac_per_s", limits.byte_macs_per_s / kGiga}}},
                        {"matmul", std::move(matmul)}};
}

double number(const nlohmann::json& value) {
  return value.get<double>();
}

std::string path_text(const std::string& path, const nlohmann::json& measured) {
  std::string text;
  for (const auto& [format, by_rows] : measured.at("matmul").items()) {
    std::map<std::uint64_t, const nlohmann::json*> ascending;
    for (const auto& [rows, figures] : by_rows.items()) ascending[std::stoul(rows)] = &figures;
    for (const auto& [rows, figures] : ascending)
      text += fmt::format(
          "| {} | {} | {} | {:.1f} | {:.0f} | {:.0f} % | {} | {:.1f} µs |\n", format, path, rows,
          number(figures->at("gb_per_s")), number(figures->at("gmac_per_s")),
          100 * number(figures->at("share_of_limit")), figures->at("limited_by").get<std::string>(),
          number(figures->at("unit_us")));
  }
  return text;
}

}  // namespace

Result<nlohmann::json> measure_kernels(const KernelsBenchConfig& config) {
  const std::vector<TensorType> types = TRY(types_of(config));
  std::vector<SimdPath> paths;
  if (const auto only = simd_path_from_name(config.simd)) {
    if (const std::string_view missing = missing_for(*only); !missing.empty())
      return fail(Errc::BadRequest, fmt::format("this CPU lacks {}; choose another --simd path or "
                                                "omit the option",
                                                missing));
    paths.push_back(*only);
  }
  for (const SimdPath path : {SimdPath::Amx, SimdPath::Avx512, SimdPath::AvxVnni, SimdPath::Avx2})
    if (config.simd.empty() && cpu_has(path) && passes_self_check(path)) paths.push_back(path);
  if (paths.empty()) paths.push_back(SimdPath::Scalar);
  nlohmann::json kernels{{"threads", config.threads},
                         {"rounds", config.rounds},
                         {"n_out", config.n_out},
                         {"n_in", config.n_in}};
  for (const SimdPath path : paths)
    kernels["paths"][std::string(name(path))] = TRY(measure_path(config, path, types));
  return nlohmann::json{{"kernels", std::move(kernels)}};
}

std::string kernels_text(const nlohmann::json& report) {
  const nlohmann::json& kernels = report.at("kernels");
  std::string text = fmt::format(
      "Matrix {} x {}, {} threads, best of {} rounds.\n", kernels.at("n_out").get<std::uint32_t>(),
      kernels.at("n_in").get<std::uint32_t>(), kernels.at("threads").get<std::uint32_t>(),
      kernels.at("rounds").get<std::uint32_t>());
  std::string rows;
  for (const auto& [path, measured] : kernels.at("paths").items()) {
    const nlohmann::json& limits = measured.at("limits");
    text += fmt::format("Limits of {}: memory {:.1f} GB/s, fma {:.0f} GMAC/s, {} {:.0f} GMAC/s.\n",
                        path, number(limits.at("gb_per_s")), number(limits.at("fma_gmac_per_s")),
                        measured.at("byte_products").get<std::string>(),
                        number(limits.at("byte_gmac_per_s")));
    rows += path_text(path, measured);
  }
  return text +
         "\n| format | path | rows | GB/s | GMAC/s | of the limit | limited by | unit |\n"
         "| --- | --- | --- | --- | --- | --- | --- | --- |\n" +
         rows;
}

}  // namespace leasehold::bench

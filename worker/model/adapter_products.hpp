/// Matmuls whose weights adapters may change: the weights' products, then those of the adapters
/// (Hu et al. 2021).
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "kernels/backend.hpp"
#include "worker/model/adapter_matrices.hpp"

namespace leasehold {

/// The adapters of a step. Where none changes a weight, launches are those of the base model.
/// Elsewhere the products of the weights are computed in launches of their own, with the same bits.
/// Lifetime: the adapters' matrices and the scratch memory outlive the object.
class AdapterProducts {
 public:
  /// `h`: [max_rows, LowRankArgs::kMaxProducts, max_rank], scratch
  AdapterProducts(std::span<const AdapterMatrices* const> adapters, std::uint32_t max_rank,
                  float* h)
      : n_(adapters.size()), max_rank_(max_rank), h_(h) {
    for (std::size_t i = 0; i < n_; ++i)
      tables_[i] = adapters[i] != nullptr ? adapters[i]->all().data() : nullptr;
  }

  AdapterTable table() const { return std::span(tables_).first(n_); }

  /// The projection, whose first matmuls have these targets.
  LaunchStatus project(Backend& backend, const LaunchContext& context, const ProjectionArgs& args,
                       std::span<const AdapterTarget> targets) const {
    if (!is_changed(backend, context, targets)) return backend.project(context, args);
    LaunchStatus status{context.gates->all()};
    if (args.norm != nullptr) status &= backend.rms_norm(context, *args.norm);
    if (args.swiglu != nullptr && !status.none_live())
      status &= backend.swiglu(context, *args.swiglu);
    if (!status.none_live()) status &= backend.project(context, {.matmuls = args.matmuls});
    if (!status.none_live()) status &= add(backend, context, args.matmuls, targets);
    return status;
  }

  LaunchStatus feed_forward(Backend& backend, const LaunchContext& context,
                            const FeedForwardArgs& args) const {
    if (!is_changed(backend, context, kFeedForward)) return backend.feed_forward(context, args);
    const std::size_t n_rows = context.rows.size();
    const std::size_t at_once = backend.accepts_row_ranges() ? kRowsAtOnce : n_rows;
    LaunchStatus status{context.gates->all()};
    for (std::size_t first = 0; first < n_rows && !status.none_live(); first += at_once) {
      LaunchContext rows = context;
      rows.rows = context.rows.subspan(first, std::min(at_once, n_rows - first));
      status &= feed_forward_from(backend, rows, args, first);
    }
    return status;
  }

 private:
  static constexpr AdapterTarget kFeedForward[] = {AdapterTarget::Gate, AdapterTarget::Up,
                                                   AdapterTarget::Down};

  /// Rows of a changed feed-forward that are computed together. Measured: products of gate and up
  /// of more rows leave the caches between the launches that complete them.
  static constexpr std::size_t kRowsAtOnce = 128;

  static MatmulArgs from_row(MatmulArgs matmul, std::size_t first) {
    matmul.x += first * matmul.weight.n_in;
    matmul.out += first * matmul.weight.n_out;
    return matmul;
  }

  /// The feed-forward of the context's rows. The first one is row `first` of the arguments.
  LaunchStatus feed_forward_from(Backend& backend, const LaunchContext& context,
                                 const FeedForwardArgs& args, std::size_t first) const {
    const MatmulArgs wide[] = {from_row(args.gate, first), from_row(args.up, first)};
    const bool has_up = bool{args.up.weight.data};
    const std::size_t n_wide = has_up ? 2 : 1;
    std::optional<RmsNormArgs> norm;
    if (args.norm != nullptr) {
      norm = *args.norm;
      norm->x += first * norm->width;
      norm->out += first * norm->width;
    }
    LaunchStatus status =
        project(backend, context,
                {.norm = norm ? &*norm : nullptr, .matmuls = std::span(wide).first(n_wide)},
                std::span(kFeedForward).subspan(2 - n_wide, n_wide));
    if (status.none_live()) return status;
    const SwiGluArgs swiglu{wide[0].out, has_up ? wide[1].out : wide[0].out, args.gate.weight.n_out,
                            args.activation};
    const MatmulArgs down = from_row(args.down, first);
    return status &= project(backend, context, {.swiglu = &swiglu, .matmuls = {&down, 1}},
                             std::span(kFeedForward).last(1));
  }

  /// True if a sequence's adapter may change one of the targets. A recorded step has the launches
  /// of every adapter.
  bool is_changed(const Backend& backend, const LaunchContext& context,
                  std::span<const AdapterTarget> targets) const {
    if (!backend.accepts_row_ranges()) return n_ > 0;
    return std::ranges::any_of(table(), [&](const LowRankMatrix* adapter) {
      return adapter != nullptr && std::ranges::any_of(targets, [&](AdapterTarget target) {
               return adapter[AdapterMatrices::slot(context.layer, target)].rank > 0;
             });
    });
  }
  /// Adds the adapters' products to those of the first matmuls.
  LaunchStatus add(Backend& backend, const LaunchContext& context,
                   std::span<const MatmulArgs> matmuls,
                   std::span<const AdapterTarget> targets) const {
    std::array<LowRankProduct, LowRankArgs::kMaxProducts> products;
    for (std::size_t i = 0; i < targets.size(); ++i)
      products[i] = {.site = matmuls[i].site,
                     .slot = AdapterMatrices::slot(context.layer, targets[i]),
                     .out = matmuls[i].out,
                     .n_out = matmuls[i].weight.n_out};
    return backend.low_rank(context, {.adapters = table(),
                                      .x = matmuls.front().x,
                                      .n_in = matmuls.front().weight.n_in,
                                      .products = std::span(products).first(targets.size()),
                                      .max_rank = max_rank_,
                                      .h = h_});
  }

  std::array<const LowRankMatrix*, kMaxStepSequences> tables_;
  std::size_t n_;
  std::uint32_t max_rank_;
  float* h_;
};

}  // namespace leasehold

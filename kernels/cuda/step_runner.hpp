/// Runs the launches of a step: one by one, or as a graph.
///
/// A step in which every sequence has one row is recorded once per shape and then replayed
/// (StepGraph). `prepare` records the usual shapes; a step of another shape records its own. A
/// separate thread builds a graph while the engine thread polls: the driver may take milliseconds.
///
/// Lifetime: the context outlives it. Threads: the engine's. Errors: a failure of the card is the
/// launcher's fault.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "kernels/cuda/largest_logits.hpp"
#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/plan/plan_context.hpp"
#include "kernels/cuda/step_graph.hpp"
#include "kernels/cuda/step_memory.hpp"
#include "kernels/launch_rules.hpp"

namespace leasehold::cuda {

enum class GraphUse : std::uint8_t {
  None,   ///< Every kernel is a separate launch.
  Plain,  ///< Graphs without gates inside, to measure the cost of the gates.
  Gated,
};

/// How matrices of rows are multiplied. Matrices of row groups are always multiplied as int8, and
/// F32 rows as floats, both with the CPU's bits.
enum class RowArithmetic : std::uint8_t {
  Halves,  ///< On tensor cores; the bits differ from the CPU's.
  Floats,  ///< With the CPU's bits; slow.
};

struct CudaOptions {
  RowArithmetic rows = RowArithmetic::Halves;
  GraphUse graphs = GraphUse::Gated;
  std::uint32_t segment_layers = 4;
  /// Int8 matmuls of few rows start before the previous kernel has ended, if the card can (sm_90)
  /// and the environment does not say LEASEHOLD_CUDA_EARLY=0.
  bool starts_early = true;
  /// The most launches in the stream at once. A lower number drains the card sooner, but the host
  /// must stay ahead of the shortest kernels.
  std::uint32_t max_in_flight = 8;
  /// Called once, on the engine's thread, with the driver's error, if no graph can be made and the
  /// backend launches kernels one by one.
  std::function<void(const Error&)> on_graphs_unavailable = {};
  /// For measurements: how often a graph contains a launch of a layer; empty: once.
  std::function<std::uint32_t(const KernelLaunch& launch, std::uint16_t layer)> times_recorded = {};
};

class StepRunner {
 public:
  static Result<std::unique_ptr<StepRunner>> create(const Context& context,
                                                    const BackendLimits& limits,
                                                    const ThreadGate& gate, CudaOptions options);

  Launcher& launcher() const { return *launcher_; }
  const StepMemory& step() const { return step_memory_; }
  device::KernelGate gate() const { return step_memory_.gate(launcher_->mirror()); }
  std::size_t graph_count() const { return graphs_.size(); }
  /// Later steps are recorded again. Call it between steps.
  void forget_graphs() { graphs_.clear(); }

  /// Backend::prepare_steps; `record` runs before each graph is made.
  std::size_t prepare(const GateSet& gates, const std::function<void()>& record);
  void begin(const StepInput& input);
  /// Ends the step and copies the largest logits to the host if the step finds them.
  LaunchStatus finish(const GateSet& gates, LargestLogits& logits);

  // The values on which plans depend. A recorded step is planned for the largest step of its shape.
  PlanContext plan_context(const LaunchContext& context) const;
  /// Positions of the longest sequence.
  std::uint32_t longest() const {
    return mode_ == Mode::Record ? shape_.longest : step_memory_.longest();
  }
  std::uint32_t n_runs() const { return step_memory_.n_runs(); }
  bool has_multi_row() const { return mode_ != Mode::Record && step_memory_.has_multi_row(); }
  template <class Args>
  std::uint32_t result_count(const LaunchContext& context, const Args& args) const {
    return mode_ == Mode::Record ? shape_.n_rows : selected_rows(context, args);
  }

  /// Runs each launch of `plan(permit)` as one unit, or keeps it for a graph. Launches 0, 2, … have
  /// the label `even`, the others `odd`: attention alternates scores, which reach tenant memory,
  /// and merges. Every unit plans again under its own permit, because an address is valid only as
  /// long as its permit.
  template <class Plan>
  LaunchStatus launch_all(const LaunchContext& context, UnitLabel even, UnitLabel odd,
                          Plan&& plan) {
    expect_within_limits(limits_, context);
    LaunchStatus status{context.gates->all()};
    if (mode_ == Mode::Replay || context.rows.empty()) return status;
    std::size_t count = 1;
    for (std::size_t i = 0; i < count && !status.none_live(); ++i) {
      const UnitLabel label = i % 2 == 0 ? even : odd;
      const auto run = [&](const LaunchPermit& permit) {
        std::vector<KernelLaunch> launches = plan(permit);
        count = launches.size();
        if (i >= count) return CUDA_SUCCESS;
        if (mode_ == Mode::Launch) return launcher_->enqueue(launches[i]);
        record(launches[i], context.layer);
        return CUDA_SUCCESS;
      };
      status &= mode_ == Mode::Record
                    ? launcher_->plan_unit(*context.gates, label, run)
                    : launcher_->unit(*context.gates, label, leasehold::name(label.site), run);
    }
    is_fully_recorded_ = is_fully_recorded_ && !status.none_live();
    return status;
  }
  /// Runs the launch of `plan(context, permit)`.
  template <class Plan>
  LaunchStatus launch_one(const LaunchContext& context, UnitLabel label, Plan&& plan) {
    return launch_all(context, label, label, [&](const LaunchPermit& permit) {
      return std::vector<KernelLaunch>{plan(plan_context(context), permit)};
    });
  }

 private:
  enum class Mode : std::uint8_t { Launch, Record, Replay };

  StepRunner(const Context& context, const BackendLimits& limits, CudaOptions options,
             std::unique_ptr<Launcher> launcher, StepMemory step_memory)
      : context_(&context),
        limits_(limits),
        options_(std::move(options)),
        launcher_(std::move(launcher)),
        step_memory_(std::move(step_memory)) {}

  Mode mode_of(const StepInput& input);
  GraphShape shape_of(std::uint32_t n_rows, std::uint32_t longest) const;
  std::vector<GraphShape> usual_shapes() const;
  void begin_recording();
  void record(const KernelLaunch& launch, std::uint16_t layer);
  LaunchStatus enqueue_graph(const GateSet& gates, const StepGraph& graph,
                             const LargestLogits& logits);
  void launch_recorded(const GateSet& gates, const LargestLogits& logits);
  Result<const StepGraph*> make_graph(const GateSet& gates);
  Result<StepGraph> build_graph(const StepGraph::Plan& plan);
  void handle_graph_failure(const Error& why);

  const Context* context_;
  BackendLimits limits_;
  CudaOptions options_;
  std::unique_ptr<Launcher> launcher_;
  StepMemory step_memory_;
  Mode mode_ = Mode::Launch;
  GraphShape shape_;
  std::vector<GraphSegment> segments_;  // of the step that is being recorded
  bool is_fully_recorded_ = false;      // no launch was skipped for lack of live sequences
  std::map<GraphShape, StepGraph> graphs_;
  std::set<GraphShape> used_shapes_;  // shapes of graphs that ran, under any lease
};

}  // namespace leasehold::cuda

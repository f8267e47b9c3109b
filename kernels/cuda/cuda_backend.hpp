/// The operators on a card, with the contract of Backend.
///
/// An operator is planned (plan/: pure functions that choose kernels and parameters) and launched
/// (Launcher: announce, poll, enqueue). Steps in which every sequence has one row are recorded once
/// per shape and then replayed as a graph (StepGraph). `prepare_steps` records the usual shapes; a
/// step of another shape records its own. A separate thread builds a graph while the engine thread
/// polls: the driver may take milliseconds.
///
/// Prepared rows: the operators that compute a matmul's input also store it in the form that the
/// matmul reads, as tiles of halves or rounded to int8. The backend remembers the array and the
/// form of the prepared rows, and prepares rows only if a matmul needs others.
///
/// Lifetime: the context and the gate's worker segment, table and stop flags outlive the backend.
/// Threads: the engine's; any thread may call `when_settled`. Errors: create() reports missing
/// resources; a later failure of the card is the fault.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "kernels/backend.hpp"
#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/plan/attention_plan.hpp"
#include "kernels/cuda/plan/matmul_plan.hpp"
#include "kernels/cuda/plan/row_plan.hpp"
#include "kernels/cuda/plan/step_plan.hpp"
#include "kernels/cuda/step_graph.hpp"
#include "kernels/cuda/step_memory.hpp"

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
  /// The most launches in the stream at once. A lower number drains the card sooner, but the host
  /// must stay ahead of the shortest kernels.
  std::uint32_t max_in_flight = 8;
  /// Called once, on the engine's thread, with the driver's error, if no graph can be made and the
  /// backend launches kernels one by one.
  std::function<void(const Error&)> on_graphs_unavailable = {};
};

class CudaBackend final : public Backend {
 public:
  /// Makes the context current on the calling thread, which becomes the engine's.
  static Result<std::unique_ptr<CudaBackend>> create(const Context& context,
                                                     const BackendLimits& limits,
                                                     const ThreadGate& gate, CudaOptions options);
  ~CudaBackend() override;

  std::string_view name() const override { return name_; }
  std::byte* allocate_scratch(std::size_t size_bytes) override;
  void clear_scratch(std::byte* at, std::size_t size_bytes) override;
  std::span<const float> fetch(const float* at, std::size_t count) override;

  /// The first call prepares at most kMaxPreparedGraphs shapes, fewest positions first; a later one
  /// prepares the shapes that have run.
  std::size_t prepare_steps(const GateSet& gates, const std::function<void()>& record) override;
  void begin_step(const StepInput& input) override;
  LaunchStatus finish_step(const GateSet& gates) override;
  std::optional<TopLogits> top_logits(std::uint32_t row) const override;
  void when_settled(SettleScope scope, std::move_only_function<void()> callback) override {
    launcher_->when_settled(scope, std::move(callback));
  }
  std::optional<Error> fault() const override { return launcher_->fault(); }

  LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) override;
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) override;
  LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) override;
  LaunchStatus rope(const LaunchContext& context, const RopeArgs& args) override;
  LaunchStatus kv_append(const LaunchContext& context, const KvAppendArgs& args) override;
  LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) override;
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) override;
  LaunchStatus expert_routing(const LaunchContext& context, const ExpertRoutingArgs& args) override;
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) override;
  LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) override;
  LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) override;
  LaunchStatus copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) override;
  LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args) override;
  LaunchStatus project(const LaunchContext& context, const ProjectionArgs& args) override;
  void write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) override;
  void clear_workspace() override;
  std::vector<std::uint64_t> units_run() const override { return {launcher_->units_run()}; }

  static constexpr std::size_t kMaxPreparedGraphs = 64;

  /// The number of graphs, for tests and benchmarks.
  std::size_t graph_count() const { return graphs_.size(); }

 private:
  enum class Mode : std::uint8_t { Launch, Record, Replay };
  /// The form in which a matmul reads its rows; numbers are the elements of a rounded block.
  enum class RowForm : std::uint16_t { Floats = 0, Halves = 1, Int8By32 = 32, Int8By256 = 256 };
  /// Intermediate results that kernels pass to each other, other than scratch.
  struct Workspace;

  CudaBackend(const Context& context, const BackendLimits& limits, CudaOptions options,
              std::unique_ptr<Launcher> launcher, StepMemory step_memory);
  Result<void> allocate();
  Result<void> probe_device();
  Result<bool> probe_wgmma();

  PlanContext plan_context(const LaunchContext& context) const;
  /// Runs each launch of `plan(permit)` as one unit, or keeps it in the recorder. Launches 0, 2, …
  /// have the label `even`, the others `odd`: attention alternates scores, which reach tenant
  /// memory, and merges.
  template <class Plan>
  LaunchStatus launch_all(const LaunchContext& context, UnitLabel even, UnitLabel odd, Plan&& plan);
  template <class Plan>
  LaunchStatus launch_one(const LaunchContext& context, UnitLabel label, Plan&& plan);
  MatmulOperands matmul_operands(const LaunchContext& context, const MatmulArgs& args) const;
  /// A matmul with its leased operands, which only a permit opens.
  struct PlannedMatmul {
    MatmulOperands operands;
    Leased<const std::byte> weight;
    Leased<const float> bias;
    RowForm form;
  };
  /// Runs the group as one launch, after a launch that prepares x if necessary.
  LaunchStatus run_matmuls(const LaunchContext& context, LaunchSite site,
                           std::span<const PlannedMatmul> group);
  LaunchStatus find_top(const LaunchContext& context, const MatmulArgs& args);

  RowForm form_for(const WeightMatrix& weight) const;
  /// The form that the next matmul is likely to read.
  RowForm usual_form(std::uint32_t n_in) const;
  /// Where to store rows of n_in elements in this form.
  PreparedRows room_for(std::uint32_t n_in, RowForm form) const;
  /// Records that the prepared rows are those of `array`. Null: no rows are prepared.
  void set_prepared(const float* array, std::uint32_t n_in, RowForm form);
  bool are_prepared(const float* array, std::uint32_t n_in, RowForm form) const;
  /// Marks all rows prepared from this array as stale.
  void invalidate_prepared(const float* array);
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args, RowForm next);
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args, RowForm next);

  Mode mode_of(const StepInput& input);
  GraphShape shape_of(std::uint32_t n_rows, std::uint32_t longest) const;
  std::vector<GraphShape> usual_shapes() const;
  /// Enqueues the graph and the copy of the largest logits as one launch.
  LaunchStatus enqueue_graph(const GateSet& gates, const StepGraph& graph);
  CUresult copy_top();
  LaunchStatus launch_recorded(const GateSet& gates);
  /// Adds a launch to the segment of its layer. Launches before the first layer or after the last
  /// layer belong to the nearest segment.
  void record(const KernelLaunch& launch, std::uint16_t layer);
  /// Builds the graph on a separate thread while this thread polls.
  Result<const StepGraph*> make_graph(const GateSet& gates);
  Result<StepGraph> build_graph(const StepGraph::Plan& plan);
  /// Stops the use of graphs; a device fault becomes the backend's fault.
  void handle_graph_failure(const Error& why);
  Result<void> ensure_staging(std::size_t size_bytes);
  /// Pieces for `write`, in the staging buffer: the counter of blocks, the list, the bytes.
  struct StagedPieces {
    std::size_t size_bytes = 0;
    std::uint32_t n_first = 0;  ///< Pieces without is_last.
    std::uint32_t largest_first_bytes = 0;
  };
  StagedPieces stage(std::span<const LeasedPiece* const> pieces, const LaunchPermit& permit) const;
  /// Writes at most kMaxScatterPieces pieces; those with is_last come at the end.
  void write_ordered(const LaunchPermit& permit, std::span<const LeasedPiece* const> pieces);

  const Context* context_;
  BackendLimits limits_;
  CudaOptions options_;
  std::string name_ = "cuda";
  DeviceProperties device_properties_;
  std::unique_ptr<Launcher> launcher_;
  StepMemory step_memory_;
  std::unique_ptr<Workspace> workspace_;
  std::size_t scratch_used_ = 0;
  const float* prepared_array_ = nullptr;
  std::uint32_t prepared_n_in_ = 0;
  RowForm prepared_form_ = RowForm::Floats;

  Mode mode_ = Mode::Launch;
  GraphShape shape_;
  std::vector<GraphSegment> segments_;  // of the step that is being recorded
  bool is_fully_recorded_ = false;      // no launch was skipped for lack of live sequences
  std::map<GraphShape, StepGraph> graphs_;
  std::set<GraphShape> used_shapes_;  // shapes of graphs that ran, under any lease
  std::uint32_t n_logit_rows_ = 0;    // logit rows of the current or last step
  bool has_top_ = false;
};

}  // namespace leasehold::cuda

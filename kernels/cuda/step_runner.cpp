#include "kernels/cuda/step_runner.hpp"

#include <algorithm>
#include <thread>

#include "common/machine/start_thread.hpp"
#include "kernels/cuda/plan/step_plan.hpp"

namespace leasehold::cuda {
namespace {

constexpr std::size_t kMaxPreparedGraphs = 64;
constexpr UnitLabel kWholeStep{
    .site = LaunchSite::Embedding, .layer = 0, .touches = Touches::TenantMemory};

}  // namespace

Result<std::unique_ptr<StepRunner>> StepRunner::create(const Context& context,
                                                       const BackendLimits& limits,
                                                       const ThreadGate& gate,
                                                       CudaOptions options) {
  std::unique_ptr<Launcher> launcher = TRY(Launcher::create(context, gate, options.max_in_flight));
  StepMemory step_memory = TRY(StepMemory::create(context, limits));
  return std::unique_ptr<StepRunner>(new StepRunner(context, limits, std::move(options),
                                                    std::move(launcher), std::move(step_memory)));
}

PlanContext StepRunner::plan_context(const LaunchContext& context) const {
  return {.gate = gate(),
          .n_rows = mode_ == Mode::Record ? shape_.n_rows
                                          : static_cast<std::uint32_t>(context.rows.size()),
          .layer = context.layer};
}

void StepRunner::begin(const StepInput& input) {
  launcher_->begin(*input.gates);
  step_memory_.upload(input, *launcher_);
  mode_ = mode_of(input);
  if (mode_ == Mode::Record) begin_recording();
}

void StepRunner::begin_recording() {
  segments_.clear();
  is_fully_recorded_ = true;
}

StepRunner::Mode StepRunner::mode_of(const StepInput& input) {
  const auto n_rows = static_cast<std::uint32_t>(input.rows.size());
  // A decode step: every sequence has one row, and every row produces logits.
  const bool is_decode =
      !step_memory_.has_multi_row() && input.logit_rows.size() == input.rows.size();
  if (options_.graphs == GraphUse::None || !is_decode || n_rows == 0) return Mode::Launch;
  shape_ = shape_of(n_rows, step_memory_.longest());
  shape_.has_adapters = !input.adapters.empty();
  const auto found = graphs_.find(shape_);
  if (found == graphs_.end()) return Mode::Record;
  if (found->second.check_bound(input.gates->engine_leases())) return Mode::Replay;
  graphs_.clear();  // All graphs name the same leases.
  return Mode::Record;
}

GraphShape StepRunner::shape_of(std::uint32_t n_rows, std::uint32_t longest) const {
  const GraphShape bucket = GraphShape::bucket_for(n_rows, longest);
  return {.n_rows = std::min(bucket.n_rows, limits_.max_rows),
          .longest = std::min(bucket.longest, limits_.max_context)};
}

/// All shapes of decode steps. Few positions come first: every sequence begins with them.
std::vector<GraphShape> StepRunner::usual_shapes() const {
  const std::uint32_t most_rows =
      std::min({limits_.max_rows, limits_.max_logit_rows, kMaxStepSequences});
  std::vector<GraphShape> shapes;
  std::uint32_t longest = 0;
  while (longest < limits_.max_context) {
    longest = shape_of(1, longest + 1).longest;
    std::uint32_t n_rows = 0;
    while (n_rows < most_rows) {
      n_rows = shape_of(n_rows + 1, longest).n_rows;
      if (shapes.size() == kMaxPreparedGraphs) return shapes;
      shapes.push_back({.n_rows = n_rows, .longest = longest});
    }
  }
  return shapes;
}

std::size_t StepRunner::prepare(const GateSet& gates, const std::function<void()>& record) {
  const auto is_stale = [&](const auto& graph) {
    return !graph.second.check_bound(gates.engine_leases());
  };
  if (std::ranges::any_of(graphs_, is_stale)) graphs_.clear();
  // Tenants that wait for a restore need the next step soon, so only shapes that steps have used
  // are prepared again.
  const std::vector<GraphShape> shapes =
      used_shapes_.empty() ? usual_shapes()
                           : std::vector<GraphShape>(used_shapes_.begin(), used_shapes_.end());
  for (const GraphShape& shape : shapes) {
    if (options_.graphs == GraphUse::None || launcher_->fault()) break;
    // `record` runs a step without adapters; a step with adapters records its own graph.
    if (graphs_.contains(shape) || shape.has_adapters) continue;
    shape_ = shape;
    begin_recording();
    mode_ = Mode::Record;
    record();
    mode_ = Mode::Launch;
    if (!is_fully_recorded_) break;  // the leases ended
    if (const auto made = make_graph(gates); !made) handle_graph_failure(made.error());
  }
  return graphs_.size();
}

LaunchStatus StepRunner::finish(const GateSet& gates, LargestLogits& logits) {
  if (mode_ == Mode::Record && is_fully_recorded_) launch_recorded(gates, logits);
  if (std::exchange(mode_, Mode::Launch) == Mode::Replay) {
    logits.set_found(true);
    // The graph is the last launch in the stream, so it is over when the stream is empty.
    if (!enqueue_graph(gates, graphs_.at(shape_), logits).none_live())
      return launcher_->wait_until_queued_at_most(0, gates, kWholeStep);
  } else if (logits.is_found()) {
    const DriverTurn::Short turn = launcher_->take_turn(gates, kWholeStep);
    launcher_->enqueue_internal("copying the largest logits to the host",
                                [&] { return logits.copy(*launcher_); });
  }
  return launcher_->wait_all(gates, kWholeStep);
}

/// Enqueues the graph and the copy of the largest logits as one launch.
LaunchStatus StepRunner::enqueue_graph(const GateSet& gates, const StepGraph& graph,
                                       const LargestLogits& logits) {
  used_shapes_.insert(shape_);
  return launcher_->unit(gates, kWholeStep, "replaying a step", [&](const LaunchPermit&) {
    const CUresult begun = launcher_->replay(graph.exec());
    return begun == CUDA_SUCCESS ? logits.copy(*launcher_) : begun;
  });
}

/// Makes a graph for later steps and runs it for this one; runs single launches if no graph can be
/// made.
void StepRunner::launch_recorded(const GateSet& gates, const LargestLogits& logits) {
  const Result<const StepGraph*> graph = make_graph(gates);
  if (graph) {
    enqueue_graph(gates, **graph, logits);
    return;
  }
  handle_graph_failure(graph.error());
  for (const GraphSegment& segment : segments_) {
    for (KernelLaunch launch : segment) {
      const LaunchStatus status =
          launcher_->unit(gates, kWholeStep, launch.kernel,
                          [&](const LaunchPermit&) { return launcher_->enqueue(launch); });
      if (status.none_live()) return;
    }
  }
}

/// Stops the use of graphs; a device fault becomes the backend's fault.
void StepRunner::handle_graph_failure(const Error& why) {
  if (why.code == Errc::DeviceFault) return launcher_->fail_with(why);
  options_.graphs = GraphUse::None;
  if (options_.on_graphs_unavailable) options_.on_graphs_unavailable(why);
}

/// Adds a launch to the segment of its layer. Launches before the first layer or after the last
/// layer belong to the nearest segment.
void StepRunner::record(const KernelLaunch& launch, std::uint16_t layer) {
  const std::size_t segment = layer / std::max(1u, options_.segment_layers);
  if (segments_.size() <= segment) segments_.resize(segment + 1);
  const std::uint32_t times = options_.times_recorded ? options_.times_recorded(launch, layer) : 1;
  segments_[segment].insert(segments_[segment].end(), times, launch);
}

/// Builds the graph on a separate thread while this thread polls.
Result<const StepGraph*> StepRunner::make_graph(const GateSet& gates) {
  StepGraph::Plan plan{.segments = segments_, .bound_to = gates.engine_leases(), .gate = {}};
  if (options_.graphs == GraphUse::Gated)
    plan.gate = [this](std::uint32_t segment, std::uint64_t condition) {
      return plan_segment_gate({.gate = gate(),
                                .seen = &launcher_->reports().graph,
                                .condition = condition,
                                .segment = segment});
    };
  // From here on this thread does not call the driver, and nothing waits for the card.
  launcher_->wait_until_queued_at_most(0, gates, kWholeStep);
  std::optional<Result<StepGraph>> built;
  std::atomic<bool> is_done{false};
  std::jthread builder = TRY(start_thread<std::jthread>(
      "the thread that builds a graph",
      [&] {
        built = build_graph(plan);
        is_done.store(true, std::memory_order_release);
      },
      "use --graphs none"));
  launcher_->poll_until(is_done, gates, kWholeStep);
  builder.join();
  StepGraph graph = TRY(*std::move(built));
  return &graphs_.emplace(shape_, std::move(graph)).first->second;
}

Result<StepGraph> StepRunner::build_graph(const StepGraph::Plan& plan) {
  TRY(context_->make_current());
  StepGraph graph = TRY(StepGraph::make(*context_, launcher_->library(), plan));
  // Upload before the first replay. A replay is announced, so a revocation would wait for the
  // upload.
  TRY(check(context_->driver(), launcher_->upload(graph.exec()), "uploading a graph"));
  return graph;
}

}  // namespace leasehold::cuda

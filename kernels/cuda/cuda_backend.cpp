#include "kernels/cuda/cuda_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "common/expects.hpp"
#include "common/machine/start_thread.hpp"
#include "kernels/cuda/device/rope_params.hpp"
#include "kernels/cuda/workspace.hpp"
#include "kernels/launch_rules.hpp"

namespace leasehold::cuda {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{1} << 20;
constexpr UnitLabel kWholeStep{
    .site = LaunchSite::Embedding, .layer = 0, .touches = Touches::TenantMemory};

/// Rejects models that the kernels do not support.
Result<void> check_limits(const BackendLimits& limits) {
  if (limits.head_dim <= device::kMaxHeadDim) return {};
  return fail(
      Errc::DeviceUnsupported,
      fmt::format("the model's heads have {} elements, but the CUDA kernels support at most "
                  "{}; use --device cpu",
                  limits.head_dim, device::kMaxHeadDim));
}

}  // namespace

// ---------------------------------------------------------------------------------------- creation

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(const Context& context,
                                                         const BackendLimits& limits,
                                                         const ThreadGate& gate,
                                                         CudaOptions options) {
  TRY(check_limits(limits));
  std::unique_ptr<Launcher> launcher = TRY(Launcher::create(context, gate, options.max_in_flight));
  StepMemory step_memory = TRY(StepMemory::create(context, limits));
  std::unique_ptr<CudaBackend> backend(
      new CudaBackend(context, limits, options, std::move(launcher), std::move(step_memory)));
  TRY(backend->probe_device());
  TRY(backend->allocate());
  return backend;
}

CudaBackend::CudaBackend(const Context& context, const BackendLimits& limits, CudaOptions options,
                         std::unique_ptr<Launcher> launcher, StepMemory step_memory)
    : context_(&context),
      limits_(limits),
      options_(options),
      launcher_(std::move(launcher)),
      step_memory_(std::move(step_memory)),
      workspace_(std::make_unique<Workspace>()) {}

CudaBackend::~CudaBackend() = default;

Result<void> CudaBackend::allocate() {
  Workspace& work = *workspace_;
  const Context& context = *context_;
  const std::uint32_t tile_rows = max_matmul_inputs(limits_);
  // Rounded rows are smaller than tiles.
  const std::size_t prepared_bytes =
      device::tile_halves(tile_rows, limits_.max_width) * sizeof(std::uint16_t);
  AttentionArgs attention{};
  attention.layout.head_dim = limits_.head_dim;
  attention.n_heads = limits_.n_heads;
  const std::size_t row_partials = attention_scratch_bytes_per_row(attention, limits_.max_context);
  work.scratch = TRY(DeviceBuffer::allocate(context, aligned(limits_.scratch_bytes)));
  work.prepared = TRY(DeviceBuffer::allocate(context, prepared_bytes));
  work.scales = TRY(DeviceBuffer::allocate(context, aligned(tile_rows * sizeof(float))));
  work.partials = TRY(DeviceBuffer::allocate(context, max_split_bytes(device_properties_)));
  work.counters = TRY(DeviceBuffer::allocate(
      context, aligned((counter_count(device_properties_) + limits_.max_logit_rows) *
                       sizeof(std::uint32_t))));
  work.attention = TRY(DeviceBuffer::allocate(
      context, aligned(std::max(limits_.attention_scratch_bytes, row_partials))));
  const std::size_t top_bytes = top_logits_bytes(limits_.max_logit_rows);
  work.top = TRY(DeviceBuffer::allocate(context, top_bytes));
  work.part_keys = TRY(DeviceBuffer::allocate(
      context, top_logit_keys(limits_.max_logit_rows) * sizeof(std::uint64_t)));
  work.host_top = TRY(PinnedBuffer::allocate(context, top_bytes));
  work.fetched =
      TRY(PinnedBuffer::allocate(context, std::max(1u, limits_.n_vocab) * sizeof(float)));
  work.copies = TRY(PinnedBuffer::allocate(context, 2 * kCopyBytes));
  for (const DeviceBuffer* buffer : {&work.scratch, &work.prepared, &work.scales, &work.partials,
                                     &work.counters, &work.attention, &work.top, &work.part_keys}) {
    clear_scratch(buffer->data(), buffer->size_bytes());
  }
  launcher_->wait_all();
  if (launcher_->fault()) return std::unexpected(*launcher_->fault());
  return {};
}

// ----------------------------------------------------------------------------------------- scratch

std::byte* CudaBackend::allocate_scratch(std::size_t size_bytes) {
  expects(scratch_used_ + aligned(size_bytes) <= workspace_->scratch.size_bytes(),
          "scratch requests stay within BackendLimits::scratch_bytes");
  std::byte* const at = workspace_->scratch.data() + scratch_used_;
  scratch_used_ += aligned(size_bytes);
  return at;
}

void CudaBackend::clear_scratch(std::byte* at, std::size_t size_bytes) {
  if (size_bytes == 0) return;
  launcher_->enqueue_internal("clearing scratch", [&] { return launcher_->clear(at, size_bytes); });
}

std::span<const float> CudaBackend::fetch(const float* at, std::size_t count) {
  expects(count * sizeof(float) <= workspace_->fetched.size_bytes(),
          "fetch reads at most one row of logits");
  auto* const to = reinterpret_cast<float*>(workspace_->fetched.data());
  launcher_->enqueue_internal(
      "fetching logits", [&] { return launcher_->copy_to_host(to, at, count * sizeof(float)); });
  launcher_->wait_all();
  return {to, count};
}

/// Rows of dead sequences may have written to any buffer. Counters are zero between launches.
void CudaBackend::clear_workspace() {
  const Workspace& work = *workspace_;
  for (const DeviceBuffer* buffer : {&work.prepared, &work.scales, &work.partials, &work.attention,
                                     &work.top, &work.part_keys, &work.staging})
    clear_scratch(buffer->data(), buffer->size_bytes());
  prepared_array_ = nullptr;
  launcher_->wait_all();
}

// ------------------------------------------------------------------------------------------- steps

void CudaBackend::begin_step(const StepInput& input) {
  prepared_array_ = nullptr;
  has_top_ = false;
  n_logit_rows_ = static_cast<std::uint32_t>(input.logit_rows.size());
  // Blocks that finished before the stop have advanced the counters of a stopped launch.
  if (launcher_->take_stopped()) {
    clear_scratch(workspace_->counters.data(), workspace_->counters.size_bytes());
  }
  launcher_->begin(*input.gates);
  step_memory_.upload(input, *launcher_);
  mode_ = mode_of(input);
  is_fully_recorded_ = true;
  if (mode_ == Mode::Record) segments_.clear();
}

CudaBackend::Mode CudaBackend::mode_of(const StepInput& input) {
  const auto n_rows = static_cast<std::uint32_t>(input.rows.size());
  // A decode step: every sequence has one row, and every row produces logits.
  const bool is_decode =
      !step_memory_.has_multi_row() && input.logit_rows.size() == input.rows.size();
  if (options_.graphs == GraphUse::None || !is_decode || n_rows == 0) return Mode::Launch;
  shape_ = shape_of(n_rows, step_memory_.longest());
  const auto found = graphs_.find(shape_);
  if (found == graphs_.end()) return Mode::Record;
  if (found->second.check_bound(input.gates->engine_leases())) return Mode::Replay;
  graphs_.clear();  // All graphs name the same leases.
  return Mode::Record;
}

GraphShape CudaBackend::shape_of(std::uint32_t n_rows, std::uint32_t longest) const {
  const GraphShape bucket = GraphShape::bucket_for(n_rows, longest);
  return {.n_rows = std::min(bucket.n_rows, limits_.max_rows),
          .longest = std::min(bucket.longest, limits_.max_context)};
}

/// All shapes of decode steps. Few positions come first: every sequence begins with them.
std::vector<GraphShape> CudaBackend::usual_shapes() const {
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

std::size_t CudaBackend::prepare_steps(const GateSet& gates, const std::function<void()>& record) {
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
    if (graphs_.contains(shape)) continue;
    shape_ = shape;
    prepared_array_ = nullptr;
    segments_.clear();
    is_fully_recorded_ = true;
    mode_ = Mode::Record;
    record();
    mode_ = Mode::Launch;
    has_top_ = false;
    if (!is_fully_recorded_) break;  // the leases ended
    if (const auto made = make_graph(gates); !made) handle_graph_failure(made.error());
  }
  return graphs_.size();
}

LaunchStatus CudaBackend::finish_step(const GateSet& gates) {
  if (mode_ == Mode::Record && is_fully_recorded_) launch_recorded(gates);
  if (std::exchange(mode_, Mode::Launch) == Mode::Replay) {
    has_top_ = true;
    // The graph is the last launch in the stream, so it is over when the stream is empty.
    if (!enqueue_graph(gates, graphs_.at(shape_)).none_live())
      return launcher_->wait_until_queued_at_most(0, gates, kWholeStep);
  } else if (has_top_) {
    const DriverTurn::Short turn = launcher_->take_turn(gates, kWholeStep);
    launcher_->enqueue_internal("copying the largest logits to the host",
                                [&] { return copy_top(); });
  }
  return launcher_->wait_all(gates, kWholeStep);
}

CUresult CudaBackend::copy_top() {
  return launcher_->copy_to_host(workspace_->host_top.data(), workspace_->top.data(),
                                 workspace_->top.size_bytes());
}

LaunchStatus CudaBackend::enqueue_graph(const GateSet& gates, const StepGraph& graph) {
  used_shapes_.insert(shape_);
  return launcher_->unit(gates, kWholeStep, "replaying a step", [&](const LaunchPermit&) {
    const CUresult begun = launcher_->replay(graph.exec());
    return begun == CUDA_SUCCESS ? copy_top() : begun;
  });
}

/// Makes a graph for later steps and runs it for this one; runs single launches if no graph can be
/// made.
LaunchStatus CudaBackend::launch_recorded(const GateSet& gates) {
  const Result<const StepGraph*> graph = make_graph(gates);
  if (graph) return enqueue_graph(gates, **graph);
  handle_graph_failure(graph.error());
  LaunchStatus status{gates.all()};
  for (const GraphSegment& segment : segments_) {
    for (KernelLaunch launch : segment) {
      if (status.none_live()) return status;
      status.live &= launcher_
                         ->unit(gates, kWholeStep, launch.kernel,
                                [&](const LaunchPermit&) { return launcher_->enqueue(launch); })
                         .live;
    }
  }
  return status;
}

void CudaBackend::handle_graph_failure(const Error& why) {
  if (why.code == Errc::DeviceFault) return launcher_->fail_with(why);
  options_.graphs = GraphUse::None;
  if (options_.on_graphs_unavailable) options_.on_graphs_unavailable(why);
}

void CudaBackend::record(const KernelLaunch& launch, std::uint16_t layer) {
  const std::size_t segment = layer / std::max(1u, options_.segment_layers);
  if (segments_.size() <= segment) segments_.resize(segment + 1);
  segments_[segment].push_back(launch);
}

Result<const StepGraph*> CudaBackend::make_graph(const GateSet& gates) {
  StepGraph::Plan plan{.segments = segments_, .bound_to = gates.engine_leases(), .gate = {}};
  if (options_.graphs == GraphUse::Gated)
    plan.gate = [this](std::uint32_t segment, std::uint64_t condition) {
      return plan_segment_gate({.gate = step_memory_.gate(launcher_->mirror()),
                                .seen = launcher_->graph_progress(),
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

Result<StepGraph> CudaBackend::build_graph(const StepGraph::Plan& plan) {
  TRY(context_->make_current());
  StepGraph graph = TRY(StepGraph::make(*context_, launcher_->library(), plan));
  // Upload before the first replay. A replay is announced, so a revocation would wait for the
  // upload.
  TRY(check(context_->driver(), launcher_->upload(graph.exec()), "uploading a graph"));
  return graph;
}

std::optional<TopLogits> CudaBackend::top_logits(std::uint32_t row) const {
  if (!has_top_ || row >= n_logit_rows_) return std::nullopt;
  const CandidateRows rows = candidate_rows(workspace_->host_top.data(), limits_.max_logit_rows);
  TopLogits top{.tokens = {}, .all_finite = rows.has_nonfinite[row] == 0};
  for (std::uint32_t i = 0; i < rows.k; ++i) {
    const device::Candidate& candidate = rows.out[std::size_t{row} * rows.k + i];
    if (candidate.token == device::kNoToken) break;  // the vocabulary has no more tokens
    top.tokens.push_back({.token = candidate.token, .logit = candidate.logit});
  }
  return top;
}

}  // namespace leasehold::cuda

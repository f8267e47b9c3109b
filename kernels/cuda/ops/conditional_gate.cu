/// The gate before a conditional node. It is a separate image, because drivers without conditional
/// nodes reject it; the worker then uses lh_segment_gate.
#include "kernels/cuda/device/segment_gate.cuh"

namespace leasehold::device {

/// Runs with one thread. The condition of a skipped segment must be set to 0. The host may read
/// `seen` before the condition is set: the segment begins after this kernel in any case.
LEASEHOLD_KERNEL(lh_conditional_gate, SegmentGateParams, 1) {
  const bool may_run = report_segment(p);
  set_graph_condition(p.condition, may_run ? 1 : 0);
}

}  // namespace leasehold::device

/// Compiles every header that kernels share with other folders, as a kernel file would. There is no
/// code here: nvcc must accept each C++20-clean header without a warning.
#include "common/expects.hpp"
#include "ipc/segment/gate_set.hpp"
#include "ipc/segment/launch_gate.hpp"
#include "ipc/segment/launch_site.hpp"
#include "ipc/segment/lease_word.hpp"
#include "ipc/segment/leased.hpp"
#include "ipc/segment/segment_layout.hpp"
#include "ipc/segment/thread_gate.hpp"
#include "kernels/launch_status.hpp"
#include "kernels/numerics/attention_order.hpp"
#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/expert_routing.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/int8_order.hpp"
#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/numerics/rope.hpp"
#include "kernels/op_args.hpp"
#include "kernels/quant/element.hpp"
#include "kernels/quant/group_format.hpp"
#include "kernels/quant/tensor_type.hpp"

static_assert(__cplusplus >= 202002L);

// What the model of a worker does for its adapters: calls, orders and units that fill memory.
#include "tests/simulation/adapters/worker_adapters.hpp"
#include "tests/simulation/model_worker.hpp"
#include "worker/engine/worker_gates.hpp"

namespace leasehold::simulation {
namespace {

constexpr std::uint32_t kDiesInSlice = 48;  // one slice in 48 is never finished

}  // namespace

void Worker::on_adapters_notice(const wire::AdaptersChanged&) {
  if (adapters_) post([this] { adapters_->changed(); });
}

void Worker::on_adapters_notice(const wire::AdaptersYield& asked) {
  if (adapters_) post([this, asked] { adapters_->yield(asked); });
}

void Worker::on_adapter_order(const effect::SendAdapterOrder& effect, std::uint64_t number) {
  const auto on_done = [this, call = effect.call, number](std::optional<Error> refused) {
    reply(number, AdapterOrderAnswered{call, std::move(refused)});
  };
  post([this, order = effect.order, on_done] {
    std::visit([&](const auto& each) { adapters_->order(each, on_done); }, order);
  });
}

void Worker::resolve(const TenantId& tenant, const std::string& adapter,
                     const Broker::ResolveHandler& on_reply) {
  if (!is_connected())
    return post([on_reply] { on_reply(fail(Errc::ConnectionLost, "no broker")); });
  broker_->resolve(*link_, tenant, adapter, [this, on_reply](const auto& answer) {
    post([on_reply, answer] { on_reply(answer); });
  });
}

bool Worker::fill(LeaseId lease, ExtentId extent, std::uint64_t content) {
  const auto dependency = table_->dependency(lease);
  if (!dependency) return false;
  const StopFlags no_stops;
  NullRefusalListener refusals;  // the load finds out by the result
  GateSet set(++step_, no_stops, refusals);
  set.add_sequence(std::vector{*dependency});
  Thread& thread = threads_[0];
  thread.unit.called_at = deps_.machine.step;
  const SequenceMask live = thread.gate->run(
      set, {LaunchSite::WeightLoad, 0, Touches::TenantMemory}, [&](const LaunchPermit&) {
        deps_.judge.unit_opened(thread.unit, Touches::TenantMemory, {lease});
        deps_.judge.touched(*this, thread.unit, lease, extent);
        deps_.adapters->slice_begun(extent);
        const bool dies = !deps_.persistent.is_finishing && deps_.machine.one_in(kDiesInSlice);
        kill_pending = kill_pending || dies;
        if (deps_.machine.reach(FaultSite::WorkerUnitPolled, *this)) Fiber::pause();
        do {
          Fiber::pause();
        } while (kill_pending);
        deps_.judge.touched(*this, thread.unit, lease, extent);
        deps_.adapters->slice_written(extent, content);
        thread.unit.open = false;
      });
  return live != 0;
}

}  // namespace leasehold::simulation

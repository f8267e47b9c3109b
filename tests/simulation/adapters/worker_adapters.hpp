/// The adapters of a simulated worker: the product's AdapterBook decides, and this model performs
/// its decisions as AdapterLoader does. Files are the simulated disk's; slices are copied by units
/// that ask the real gate.
///
/// Lifetime: the worker's. Threads: the engine's fiber.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "ipc/control/messages/adapters/adapters.hpp"
#include "tests/simulation/adapters/adapter_judge.hpp"
#include "tests/simulation/model_broker.hpp"
#include "worker/adapter/adapter_book.hpp"

namespace leasehold::simulation {

class Worker;

class WorkerAdapters {
 public:
  using OnReady = std::function<void(const Result<AdapterUse>&)>;

  WorkerAdapters(Dependencies deps, Worker& worker) : deps_(deps), worker_(worker) {}

  // Between two steps.
  void use(const std::string& tenant, const std::string& name, OnReady on_ready);
  void granted(const wire::LeaseGrant& grant);
  void changed();
  void yield(const wire::AdaptersYield& asked);
  void order(const wire::AdapterLoad& load, std::function<void(std::optional<Error>)> on_done);
  void order(const wire::AdapterUnload& unload, std::function<void(std::optional<Error>)> on_done);
  /// Its calls end with ConnectionLost.
  void broker_lost();
  /// Ready at a broker again.
  void reconnected();
  /// Copies one slice, and gives the book its time.
  void work();
  bool has_slices() const;

 private:
  struct Granted {
    std::string name;
    std::uint32_t version = 0;
    std::vector<ExtentId> extents;
  };
  struct Loading {
    std::string path;
    std::uint64_t content = 0;  ///< As the file was opened.
    LeaseId lease;
    std::vector<ExtentId> left;  ///< To copy.
    bool is_copying = false;
  };
  template <class T>
  using Then = std::function<void(const Result<T>&)>;

  void perform_all();
  void perform(const ResolveAdapter& action);
  void perform(const OpenAdapterFile& action);
  void perform(const OpenAdapterLease& action);
  void perform(const CopyAdapter& action);
  void perform(const ConfirmAdapter& action);
  void perform(const DropAdapterFile& action) { loading_.erase(action.load); }
  void perform(const CloseAdapterLease& action) { close(action.lease); }
  void perform(const AnswerAdapterUse& action);
  void perform(const ReportAdapterLoaded&) {}  // the judge counts
  void perform(const ReportAdapterEvicted& action);

  void close(LeaseId lease);
  void close_unknown(const std::function<bool(const Granted&)>& matches);
  void close_used();
  void find_revoked();
  void copy_slice();
  void file_opened(AdapterLoadId load);
  void lease_opened(AdapterLoadId load, const Result<Answer>& answer);
  /// Sends a call, and runs `then` between two steps with the answer or with ConnectionLost.
  template <class Message>
  void call(Message message, Then<Answer> then);
  std::uint64_t expect(std::function<void(const Error&)> lost);
  TimePoint now() const { return deps_.machine.clock.now(); }

  Dependencies deps_;
  Worker& worker_;
  AdapterBook book_;
  std::map<AdapterLoadId, Loading> loading_;
  std::map<LeaseId, Granted> granted_;
  std::map<AdapterTicket, OnReady> callers_;
  std::map<std::uint64_t, std::function<void(const Error&)>> calls_;  ///< Not answered.
  std::uint64_t last_call_ = 0;
};

}  // namespace leasehold::simulation

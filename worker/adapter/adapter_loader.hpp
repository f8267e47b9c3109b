/// Loads adapters on demand: performs what an AdapterBook decides.
///
///   resolve (broker) → open and hash the file (reader's thread) → adapter.open (broker, which
///   grants the extents first) → slices: read (reader's thread), copied through gates between
///   steps → adapter.filled (broker) → ready
///
/// Beside running texts, copies take the share of CopyBudget; while no step runs they take all.
/// A revocation: the next unit is refused, `work` finds the lease revoked before the next step, and
/// the next request loads the adapter again under a new lease.
///
/// Lifetime: everything in Dependencies outlives it; the reader's thread and the loop end before
/// it. Threads: `answers`, `on_call` and `reconnected` on any, the rest on the
/// engine's.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "worker/adapter/adapter_book.hpp"
#include "worker/adapter/adapter_calls.hpp"
#include "worker/adapter/adapter_copy.hpp"
#include "worker/adapter/copy_budget.hpp"
#include "worker/metrics/engine_metrics.hpp"

namespace leasehold {

class AdapterLoader final : public AdapterService {
 public:
  struct Dependencies {
    EngineLoop* loop = nullptr;
    boost::asio::any_io_executor answers;  ///< Runs the connection that `on_call` answers.
    boost::asio::any_io_executor reader;   ///< Runs one thread, which may block.
    AdapterCalls::Call call;
    const ModelConfig* model = nullptr;
    const Clock* clock = nullptr;
    AdapterDirectory directory;
    AdapterCopy::Dependencies copy;
  };
  explicit AdapterLoader(Dependencies dependencies);

  /// The size of the broker's extents. Called before the loop runs.
  void set_extent_bytes(std::uint64_t bytes) { deps_.directory.extent_bytes = bytes; }

  void use(const TenantId& tenant, const std::string& name, OnReady on_ready) override;

  /// The leases of all versions that requests may hold, also of those that were just revoked.
  std::vector<LeaseId> leases() const override;

  /// True for `adapter.load`, `adapter.unload`, `adapters.changed` and `adapters.yield`.
  static bool answers(const std::string& method);
  void on_call(const std::string& method, const control::Json& params, control::Responder respond);

  /// The broker is connected again. It may have changed the registry meanwhile, or granted a lease
  /// whose answer was lost. Any thread.
  void reconnected();

  /// The extents of the lease are mapped, and belong to this version.
  void granted(LeaseId lease, const std::string& name, std::uint32_t version);

  /// Called between two steps, and when it asked to be called: continues loads, and notices revoked
  /// leases. `step`: the duration of the step before this call; nothing if none ran. Returns when
  /// to call again without a step; kNoRetry for not before the next command.
  TimePoint work(std::optional<Duration> step);

  AdapterCounts counts() const;

 private:
  /// A load whose file is open.
  struct Loading {
    std::shared_ptr<AdapterReader> reader;
    std::optional<AdapterCopy> copy = {};
    std::size_t n_reading = 0;  ///< Slices that the reader has not given yet.
    bool is_read = false;       ///< The last slice was read.
  };
  struct Granted {
    std::string name;
    std::uint32_t version = 0;
  };

  void answer(control::Responder respond, std::optional<Error> refused);
  Result<void> handle(const std::string& method, const control::Json& params,
                      control::Responder& respond);
  void perform();
  void perform(ResolveAdapter& action);
  void perform(OpenAdapterFile& action);
  void perform(OpenAdapterLease& action);
  void perform(CopyAdapter& action);
  void perform(ConfirmAdapter& action);
  void perform(DropAdapterFile& action);
  void perform(CloseAdapterLease& action);
  void perform(AnswerAdapterUse& action);
  void perform(ReportAdapterLoaded& action);
  void perform(ReportAdapterEvicted& action);
  void file_opened(AdapterLoadId load, Result<std::shared_ptr<AdapterReader>> reader);
  void read_next(AdapterLoadId load, Loading& loading);
  void slice_read(AdapterLoadId load, Result<AdapterSlice> slice);
  void copy(std::optional<Duration> step);
  Result<bool> copy(Loading& loading, std::uint64_t& left_bytes);
  bool has_slices() const;
  void find_revoked(TimePoint now);
  void close_unknown(const std::function<bool(const Granted&)>& matches);
  TimePoint now() const { return deps_.clock->now(); }

  Dependencies deps_;
  AdapterCalls calls_;
  AdapterBook book_;
  CopyBudget budget_;
  std::map<AdapterTicket, OnReady> callers_;
  std::map<AdapterLoadId, Loading> loading_;
  std::map<LeaseId, Granted> granted_;                       // live, as far as `find_revoked` knows
  std::vector<std::weak_ptr<const LoadedAdapter>> revoked_;  // while a request holds it
  std::uint64_t loads_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace leasehold
